// vellum mount of a lazy clone. The remote is a directory, or a real S3 server (tools/with-s3.sh).
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "cli/remote/lazy_clone_lib.hpp"
#include "mount/mount_lib.hpp"
#include "support/descriptor.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

using test::Descriptor;

class MountLazyCloneNoSanitizer : public AtEachRemote<MountTest> {};

TEST_P(MountLazyCloneNoSanitizer, EachVersionIsAFile) {
  for (const std::string& store : {clone, url}) {
    serve(store);
    EXPECT_TRUE(read_file(at("v1")) == noise(100, 1)) << store;
    EXPECT_TRUE(read_file(at("main")) == noise(100, 2)) << store;
    EXPECT_EQ(stop(SIGTERM), 0) << log();
  }
}

TEST_P(MountLazyCloneNoSanitizer, ABranchIsWrittenAndPushed) {
  serve(clone, {"--writable", "main"});
  std::string expected = noise(100, 2);
  {
    const Descriptor file(at("main"), O_RDWR);
    const std::string part = noise(1, 7);
    ASSERT_EQ(pwrite(file.fd(), part.data(), part.size(), 5000), static_cast<ssize_t>(part.size()));
    ASSERT_EQ(fsync(file.fd()), 0);
    expected.replace(5000, part.size(), part);
  }
  EXPECT_TRUE(read_file(at("main")) == expected);
  EXPECT_EQ(stop(SIGTERM), 0) << log();
  must({"push", clone, "main"});
  must({"clone", url, path("full")});
  EXPECT_TRUE(must({"cat", path("full"), "main"}).out == expected);
  EXPECT_TRUE(must({"cat", path("full"), "v2"}).out == noise(100, 2));
}

INSTANTIATE_TEST_SUITE_P(At, MountLazyCloneNoSanitizer, testing::Bool(), [](const auto& of) {
  return std::string(of.param ? "Server" : "Directory");
});

class MountOutageNoSanitizer : public OfLazyClone<MountTest> {
 protected:
  void TearDown() override {
    OfLazyClone::TearDown();
    unsetenv("VELLUM_REMOTE_WAIT_S");
  }
};

TEST_F(MountOutageNoSanitizer, AnOutageFailsTheReadAndTheNextOneSucceeds) {
  clone_from("file://" + path("remote"));
  const fs::path pieces = path("remote/pieces"), outage = path("remote/gone");
  ASSERT_EQ(setenv("VELLUM_REMOTE_WAIT_S", "0.2", 1), 0);
  serve(clone);
  fs::rename(pieces, outage);
  write_file(pieces, "no directory");
  const Descriptor file(at("v1"), O_RDONLY);
  std::string page(4096, 0);
  EXPECT_EQ(pread(file.fd(), page.data(), page.size(), 0), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_TRUE(contains(log(), "v1")) << log();
  fs::remove(pieces);
  fs::rename(outage, pieces);
  EXPECT_TRUE(read_file(at("v1")) == noise(100, 1));
}

}  // namespace
}  // namespace vellum::cli_test
