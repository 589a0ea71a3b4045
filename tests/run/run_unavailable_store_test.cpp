// vellum run: while the store is unavailable, nothing can be committed, and nothing is lost as long
// as the program continues (programs/unavailable_store.c).
#include <signal.h>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

class RunUnavailableStoreNoSanitizer : public CliTest {
 protected:
  std::string store() const { return path("store"); }
  std::string data() const { return path("data"); }
  void expect_second_write_is_kept(const std::string& scenario, int status) const {
    const Result result = run({"run", "--strict", "--store", store(), "--file", data(), "--",
                               VELLUM_UNAVAILABLE_STORE, scenario, data(), store()});
    EXPECT_EQ(status, result.status) << result.err;
    EXPECT_NE(std::string::npos, result.err.find("is not the file that was opened")) << result.err;
    std::string expected(8192, '\0');
    expected.replace(0, 5, "first").replace(5000, 6, "second");
    EXPECT_TRUE(expected == read_file(data()));
    must({"export", store(), "main", path("exported")});
    EXPECT_TRUE(expected == read_file(path("exported")));
  }
};

TEST_F(RunUnavailableStoreNoSanitizer, TheNextFlushCommitsTheBytesOfAFailedOne) {
  expect_second_write_is_kept("flushes-again", 128 + SIGKILL);
}

TEST_F(RunUnavailableStoreNoSanitizer, AFileThatCannotBeCommittedAtCloseIsCommittedAtTheEnd) {
  expect_second_write_is_kept("closes", 0);
}

}  // namespace
}  // namespace vellum::cli_test
