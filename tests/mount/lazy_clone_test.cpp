// vellum mount of a store whose packs lie at a remote. The remote is a directory, or a real S3 server
// (tools/with-s3.sh).
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "mount/mount_lib.hpp"
#include "support/descriptor.hpp"
#include "support/s3_url.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

using test::Descriptor;

class MountOfLazyClone : public MountTest {
 protected:
  void TearDown() override {
    unsetenv("VELLUM_CACHE_DIR");
    unsetenv("VELLUM_REMOTE_WAIT_S");
  }
  void clone_from(const std::string& where) {
    url = where;
    const std::string source = make_store_with({noise(100, 1), noise(100, 2)});
    must({"remote", "add", source, "origin", url});
    must({"push", source, "--all"});
    ASSERT_EQ(setenv("VELLUM_CACHE_DIR", path("cache").c_str(), 1), 0);
    must({"clone", "--lazy", url, clone});
  }

  const std::string clone = path("clone");
  std::string url;
};

// The parameter: whether the remote is at the real server.
class MountLazyCloneNoSanitizer : public MountOfLazyClone,
                                  public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    MountOfLazyClone::SetUp();
    if (IsSkipped()) return;
    const std::string where = GetParam() ? test::new_s3_url() : "file://" + path("remote");
    if (where.empty()) GTEST_SKIP() << test::kNoS3;
    clone_from(where);
  }
};

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

class MountOutageNoSanitizer : public MountOfLazyClone {};

TEST_F(MountOutageNoSanitizer, IsAnErrorOfTheReadAndTheNextOneSucceeds) {
  clone_from("file://" + path("remote"));
  const fs::path pieces = path("remote/pieces"), away = path("remote/gone");
  ASSERT_EQ(setenv("VELLUM_REMOTE_WAIT_S", "0.2", 1), 0);
  serve(clone);
  fs::rename(pieces, away);
  write_file(pieces, "no directory");
  const Descriptor file(at("v1"), O_RDONLY);
  std::string page(4096, 0);
  EXPECT_EQ(pread(file.fd(), page.data(), page.size(), 0), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_TRUE(contains(log(), "v1")) << log();
  fs::remove(pieces);
  fs::rename(away, pieces);
  EXPECT_TRUE(read_file(at("v1")) == noise(100, 1));
}

}  // namespace
}  // namespace vellum::cli_test
