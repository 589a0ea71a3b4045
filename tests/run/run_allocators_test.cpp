// vellum run: programs with other allocators than the C library's. An allocator calls mmap(2),
// madvise(2), open(2) with its own locks held: the library must not allocate there, and must not
// wait for a thread that does.
#include <algorithm>
#include <filesystem>
#include <string>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

class RunAllocatorsNoSanitizer : public CliTest {
 protected:
  // The program runs with this library after ours, under `timeout`, because a deadlock would be the
  // error.
  Result calls_on(const std::string& allocator, const std::string& program,
                  const std::string& scenario, const std::string& pattern) const {
    const std::string script = "LD_PRELOAD=\"$LD_PRELOAD:" + allocator + "\" exec timeout 60 " +
                               program + " " + scenario + " " + path("data");
    return run(
        {"run", "--store", path("store"), "--file", path(pattern), "--", "sh", "-c", script});
  }
  void expect_works(const std::string& allocator) const {
    for (const std::string scenario : {"coherent", "threads", "forks", "streams"}) {
      const Result result = calls_on(allocator, VELLUM_FILE_CALLS, scenario, "data");
      EXPECT_EQ(0, result.status) << scenario << ": " << result.err;
    }
  }
};

class RunAllocatorNoSanitizer : public RunAllocatorsNoSanitizer,
                                public testing::WithParamInterface<const char*> {};

TEST_P(RunAllocatorNoSanitizer, AProgramWithTheAllocatorWorks) {
  const std::string library = std::string("/usr/lib/x86_64-linux-gnu/") + GetParam();
  if (!std::filesystem::exists(library))
    GTEST_SKIP() << library << " is not installed: tools/install-deps.sh does it";
  expect_works(library);
}

INSTANTIATE_TEST_SUITE_P(Allocators, RunAllocatorNoSanitizer,
                         testing::Values("libjemalloc.so.2", "libtcmalloc_minimal.so.4",
                                         "libtcmalloc.so.4", "libmimalloc.so.2",
                                         "libmimalloc.so.3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

// programs/malloc_guard.c makes these calls at each allocation, others only now and then.
TEST_F(RunAllocatorsNoSanitizer, NothingIsAllocatedInCallsOfAnAllocator) {
  expect_works(VELLUM_MALLOC_GUARD);
}

TEST_F(RunAllocatorsNoSanitizer, NothingIsAllocatedBeforeTheFirstWatchedOpen) {
  for (const char* pattern : {"data", "dat[a-z]"}) {
    const Result result = calls_on(VELLUM_MALLOC_GUARD, VELLUM_CALL_FAMILY, "unwatched", pattern);
    EXPECT_EQ(0, result.status) << result.err;
    std::filesystem::remove_all(path("store"));
  }
}

}  // namespace
}  // namespace vellum::cli_test
