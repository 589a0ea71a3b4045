// vellum run in a store with packs at a remote: an unmodified program reads and writes its file.
#include "cli/remote/lazy_clone_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class RunLazyCloneNoSanitizer : public AtEachRemote<CliTest> {
 protected:
  Result run_in(const std::string& store, const Arguments& options,
                const Arguments& program) const {
    Arguments arguments{"run", "--store", store, "--file", data};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), program.begin(), program.end());
    return must(arguments);
  }

  const std::string data = path("data");
};

TEST_P(RunLazyCloneNoSanitizer, AProgramReadsARemoteVersion) {
  for (const std::string& store : {clone, url}) {
    EXPECT_TRUE(run_in(store, {"--version", "v1"}, {"cat", data}).out == noise(100, 1)) << store;
    EXPECT_FALSE(fs::exists(data));
  }
}

TEST_P(RunLazyCloneNoSanitizer, TheWritesOfAProgramArePushed) {
  const std::string part = noise(2, 5);
  run_in(clone, {},
         {"dd", "if=" + file("part", part), "of=" + data, "bs=4096", "seek=50",
          "conv=notrunc,fsync", "status=none"});
  std::string expected = noise(100, 2);
  expected.replace(50 * 4096, part.size(), part);
  EXPECT_TRUE(read_file(data) == expected);
  EXPECT_TRUE(must({"cat", clone, "main"}).out == expected);
  EXPECT_TRUE(must({"cat", clone, "v2"}).out == noise(100, 2));
  must({"push", clone, "main"});
  must({"clone", url, path("full")});
  EXPECT_TRUE(must({"cat", path("full"), "main"}).out == expected);
}

INSTANTIATE_TEST_SUITE_P(At, RunLazyCloneNoSanitizer, testing::Bool(), [](const auto& of) {
  return std::string(of.param ? "Server" : "Directory");
});

}  // namespace
}  // namespace vellum::cli_test
