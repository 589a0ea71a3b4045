// vellum run: requests get the kernel's result, and each call that makes a file durable is a
// commit, also through functions that were looked up; locks are where programs expect them.
#include <filesystem>

#include <unistd.h>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class RunAnswersNoSanitizer : public CliTest {
 protected:
  std::string store() const { return path("store"); }
  std::string data() const { return path("data"); }
  Result under_run(const std::string& file, const Arguments& program) const {
    Arguments all = {"run", "-q", "--store", store(), "--file", file, "--"};
    all.insert(all.end(), program.begin(), program.end());
    return run(all);
  }
  std::string at(std::size_t offset, std::size_t count) const {
    const std::string content = read_file(data());
    return content.size() > offset ? content.substr(offset, count) : "";
  }
  void start_anew() const {
    fs::remove_all(store());
    fs::remove(data());
  }
};

TEST_F(RunAnswersNoSanitizer, RequestsAndAdviceBehaveAsInTheKernel) {
  for (const char* scenario : {"refuses", "advice"}) {
    const Arguments program = {VELLUM_KERNELS_ANSWERS, scenario, data()};
    const Result plain = run_program(program);
    EXPECT_EQ(0, plain.status) << "without Vellum: " << scenario << plain.err;
    start_anew();
    const Result result = under_run(data(), program);
    EXPECT_EQ(0, result.status) << scenario << ": " << result.err;
    start_anew();
  }
}

TEST_F(RunAnswersNoSanitizer, EachCallThatMakesAFileDurableIsACommit) {
  for (const char* kind : {"fsync", "fdatasync", "syncfs", "sync", "sync_file_range", "O_DSYNC",
                           "O_SYNC", "RWF_DSYNC", "RWF_SYNC", "aio_fsync"}) {
    for (const char* mapped : {"none", "read", "write"}) {
      start_anew();
      const Result result =
          under_run(data(), {VELLUM_KERNELS_ANSWERS, "durable", data(), kind, mapped});
      EXPECT_EQ(128 + 9, result.status) << kind << " " << mapped << ": " << result.err;
      EXPECT_EQ("acknowledged", at(8192, 12)) << kind << " " << mapped;
    }
  }
}

TEST_F(RunAnswersNoSanitizer, LookedUpFunctionsAreTheLibrarys) {
  const Arguments answers = {VELLUM_LOOKED_UP, "answers", data()};
  const Result plain = run_program(answers), under = under_run(data(), answers);
  EXPECT_EQ(0, plain.status) << "without Vellum: " << plain.err;
  EXPECT_EQ(0, under.status) << under.err;
  for (const char* how : {"library", "dlvsym", "twice", "dlmopen", "program", "default", "next"}) {
    start_anew();
    const Result result = under_run(data(), {VELLUM_LOOKED_UP, how, data()});
    EXPECT_EQ(128 + 9, result.status) << how << ": " << result.err;
    EXPECT_EQ("put", at(0, 3)) << how;
    EXPECT_EQ("flushed", at(4096, 7)) << how;
    EXPECT_EQ("acknowledged", at(8192, 12)) << how;
  }
}

TEST_F(RunAnswersNoSanitizer, PythonsCtypesUsesTheLibrary) {
  const std::string program = file("msync.py", R"(
import ctypes, os, signal, sys
libc = ctypes.CDLL("libc.so.6", use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 65536)
at = libc.mmap(None, 65536, 3, 1, fd, 0)
ctypes.memmove(at + 8192, b"acknowledged", 12)
assert libc.msync(at, 65536, 4) == 0
os.kill(os.getpid(), signal.SIGKILL)
)");
  const Result result = under_run(data(), {"python3", program, data()});
  EXPECT_EQ(128 + 9, result.status) << result.err;
  EXPECT_EQ("acknowledged", at(8192, 12));
}

TEST_F(RunAnswersNoSanitizer, ProgramsCanLockTheirOwnFile) {
  const Arguments program = {VELLUM_LOCKS, data()};
  const Result plain = run_program(program);
  EXPECT_EQ(0, plain.status) << "without Vellum: " << plain.err;
  const Result result = under_run(data(), program);
  EXPECT_EQ(0, result.status) << result.err;
}

// flock(1) locks a descriptor that its shell has opened: the lock outlives it.
TEST_F(RunAnswersNoSanitizer, FlockOfAShellDescriptorLocksTheFile) {
  const std::string script = file("script", R"(
exec 9>"$1"
flock -n 9 || exit 1
flock -n "$1" true && exit 2
flock -u 9 || exit 3
( flock -n 9 || exit 4 ) 9>>"$1" || exit 4
echo kept >&2
)");
  const Result plain = run_program({"bash", script, data()});
  EXPECT_EQ(0, plain.status) << "without Vellum: " << plain.err;
  fs::remove(data());
  const Result result = under_run(data(), {"bash", script, data()});
  EXPECT_EQ(0, result.status) << result.err;
}

TEST_F(RunAnswersNoSanitizer, AFileCanBeReopenedWhileAnotherIsFlushed) {
  fs::create_directory(path("d"));
  const Result result = under_run(path("d/*"), {VELLUM_REOPENED, path("d")});
  EXPECT_EQ(0, result.status) << result.err;
  EXPECT_EQ("", result.err);
}

TEST_F(RunAnswersNoSanitizer, ABranchIsTheContentOfOneFile) {
  const auto shell = [](const std::string& words) { return Arguments{"sh", "-c", words}; };
  EXPECT_EQ(0, under_run(path("a"), shell("echo a > " + path("a"))).status);
  const Result second = under_run(path("b"), shell("cat " + path("b")));
  EXPECT_EQ(4, second.status) << second.err;
  EXPECT_NE(std::string::npos, second.err.find("--branch")) << second.err;
  EXPECT_FALSE(fs::exists(path("b")));
  // A file that was renamed is the same one.
  fs::rename(path("a"), path("b"));
  const Result renamed = under_run(path("b"), shell("cat " + path("b")));
  EXPECT_EQ("a\n", renamed.out) << renamed.err;
}

}  // namespace
}  // namespace vellum::cli_test
