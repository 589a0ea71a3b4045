// vellum run: a file that the program has mapped for reading before it opens it for writing. The
// mapping shows later writes, as without Vellum.
#include <filesystem>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

class RunMappedFirstNoSanitizer : public CliTest {
 protected:
  Result under_vellum(const std::string& scenario) const {
    std::filesystem::remove_all(path("store"));
    return run({"run", "--store", path("store"), "--file", path("data"), "--", VELLUM_MAPPED_FIRST,
                scenario, path("data")});
  }
  void expect_head_is(const std::string& content) const {
    std::filesystem::remove(path("exported"));
    must({"export", path("store"), "main", path("exported")});
    EXPECT_TRUE(content == read_file(path("exported")));
  }
};

TEST_F(RunMappedFirstNoSanitizer, AMappingShowsLaterWritesAsWithoutVellum) {
  for (const char* scenario : {"flush-only", "writes", "cuts", "unmaps", "renamed", "forks"}) {
    SCOPED_TRACE(scenario);
    const Result plain = run_program({VELLUM_MAPPED_FIRST, scenario, path("data")});
    EXPECT_EQ(0, plain.status) << "without Vellum: " << plain.err;
    const std::string content = read_file(path("data"));
    std::filesystem::remove(path("data"));
    const Result result = under_vellum(scenario);
    EXPECT_EQ(0, result.status) << result.err;
    EXPECT_EQ(std::string::npos, result.err.find("changed around vellum")) << result.err;
    EXPECT_TRUE(content == read_file(path("data")));
    expect_head_is(content);
  }
}

TEST_F(RunMappedFirstNoSanitizer, AWritableMappingIsRefusedWhileAnOlderOneExists) {
  const Result result = under_vellum("refused");
  EXPECT_EQ(0, result.status) << result.err;
  EXPECT_NE(std::string::npos, result.err.find("cannot be mapped for writing")) << result.err;
  EXPECT_EQ("Saa", read_file(path("data")).substr(0, 3));
  expect_head_is(read_file(path("data")));
}

}  // namespace
}  // namespace vellum::cli_test
