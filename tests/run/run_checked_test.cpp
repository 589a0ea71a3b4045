// vellum run: programs under AddressSanitizer, ThreadSanitizer, valgrind, or a limit of address
// space. Each works, or is refused with a reason.
#include <filesystem>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

class RunCheckedNoSanitizer : public CliTest {
 protected:
  // False: this compiler cannot do it.
  bool build(const std::string& sanitizer, const std::string& name) const {
    const std::string source = VELLUM_SOURCE_DIR "/tests/run/programs/" + name + ".c";
    return run_program(
               {"cc", "-g", "-w", "-fsanitize=" + sanitizer, source, "-o", path(name), "-pthread"})
               .status == 0;
  }
  Result under_vellum(const Arguments& program) const {
    std::filesystem::remove_all(path("store"));
    std::filesystem::remove(path("data"));
    Arguments all = {"run", "--store", path("store"), "--file", path("data"), "--"};
    all.insert(all.end(), program.begin(), program.end());
    return run(all);
  }
  // The result is the same as without Vellum and without the tool, and all of it is in the store.
  void expect_kept(const Result& result) const {
    EXPECT_EQ(0, result.status) << result.err;
    EXPECT_EQ(std::string::npos, result.err.find("changed around vellum")) << result.err;
    ASSERT_EQ(0, run_program({VELLUM_FILE_CALLS, "kept", path("plain")}).status);
    EXPECT_TRUE(read_file(path("plain")) == read_file(path("data")));
    std::filesystem::remove(path("exported"));
    must({"export", path("store"), "main", path("exported")});
    EXPECT_TRUE(read_file(path("plain")) == read_file(path("exported")));
  }
};

TEST_F(RunCheckedNoSanitizer, AProgramWithAddressSanitizerWorks) {
  if (!build("address", "file_calls")) GTEST_SKIP() << "no AddressSanitizer here";
  const std::string program = path("file_calls");
  expect_kept(under_vellum({program, "kept", path("data")}));
  expect_kept(under_vellum({"sh", "-c", program + " kept " + path("data") + "; exit $?"}));
}

TEST_F(RunCheckedNoSanitizer, AddressSanitizerStillFindsErrors) {
  if (!build("address", "uses_freed")) GTEST_SKIP() << "no AddressSanitizer here";
  const std::string program = path("uses_freed") + " " + path("data");
  for (const Arguments& command : {Arguments{path("uses_freed"), path("data")},
                                   Arguments{"sh", "-c", program + "; exit $?"}}) {
    const Result result = under_vellum(command);
    EXPECT_EQ(1, result.status) << result.err;
    EXPECT_NE(std::string::npos, result.err.find("heap-use-after-free")) << result.err;
  }
}

TEST_F(RunCheckedNoSanitizer, AProgramWithThreadSanitizerIsRefused) {
  if (!build("thread", "file_calls")) GTEST_SKIP() << "no ThreadSanitizer here";
  expect_failure({"run", "--store", path("store"), "--file", path("data"), "--", path("file_calls"),
                  "kept", path("data")},
                 12, "unsupported", "built with ThreadSanitizer");
  EXPECT_FALSE(std::filesystem::exists(path("data")));
}

TEST_F(RunCheckedNoSanitizer, UnderValgrindAFileCannotBeOpenedForWriting) {
  if (run_program({"valgrind", "--version"}).status != 0) GTEST_SKIP() << "no valgrind here";
  const Result result =
      under_vellum({"timeout", "60", "valgrind", "-q", VELLUM_FILE_CALLS, "kept", path("data")});
  EXPECT_EQ(1, result.status) << result.err;
  EXPECT_NE(std::string::npos, result.err.find("cannot be written under valgrind")) << result.err;
}

TEST_F(RunCheckedNoSanitizer, LittleAddressSpaceIsEnough) {
  expect_kept(under_vellum(
      {"sh", "-c", "ulimit -v 4000000; exec " VELLUM_FILE_CALLS " kept " + path("data")}));
}

// Fossil limits its own writable memory.
TEST_F(RunCheckedNoSanitizer, LittleWritableMemoryIsEnough) {
  expect_kept(under_vellum(
      {"sh", "-c", "ulimit -d 4000000; exec " VELLUM_FILE_CALLS " kept " + path("data")}));
}

TEST_F(RunCheckedNoSanitizer, AFileThatCannotBeOpenedIsNotChanged) {
  for (const std::string content : {"", "some"}) {
    write_file(path("data"), content);
    write_file(path("after"), "");
    const std::string tries = "ulimit -d 60000; true >> " + path("data") + "; ";
    const Result result =
        run({"run", "--store", path("store" + content), "--file", path("data"), "--", "sh", "-c",
             tries + "cp " + path("data") + " " + path("after") + "; true"});
    EXPECT_TRUE(contains(result.err, "cannot reserve")) << result.err;
    EXPECT_EQ(content, read_file(path("after"))) << result.err;
    EXPECT_EQ(content, read_file(path("data"))) << result.err;
  }
}

}  // namespace
}  // namespace vellum::cli_test
