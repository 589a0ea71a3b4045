// Every system call of the file layer fails once, or fails from then on, in every workload
// (fault_run_lib.hpp).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "crash/fault_run_lib.hpp"
#include "support/sanitizers.hpp"

namespace vellum::crash {
namespace {

// In memory, where available: only the errors matter.
std::string scratch() {
  const std::string base = std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp";
  return fmt::format("{}/vellum-fault-{}", base, ::getpid());
}

class FaultSyscall : public testing::TestWithParam<Fault> {
 protected:
  void TearDown() override { std::filesystem::remove_all(scratch()); }

  std::uint64_t fail_every_call(const Workload& workload, bool sticky) {
    const std::uint64_t stride = static_cast<std::uint64_t>(test::rounds(1, 7));
    for (std::uint64_t n = 1;; n += stride) {
      const FaultOutcome outcome = run_with_fault(workload, scratch(), GetParam(), n, sticky);
      EXPECT_EQ(outcome.problem, "");
      if (!outcome.hit || HasFailure()) return n - 1;
    }
  }
};

TEST_P(FaultSyscall, EachCallFailsOnceOrPermanently) {
  const std::uint64_t before = faults_injected();
  std::uint64_t sites = 0;
  for (const Workload& workload : fault_workloads()) {
    sites += fail_every_call(workload, false);
    sites += fail_every_call(workload, true);
  }
  fmt::print("{}: {} runs, {} faults\n", fault_name(GetParam()), sites, faults_injected() - before);
}

INSTANTIATE_TEST_SUITE_P(Each, FaultSyscall,
                         testing::Values(Fault::no_space, Fault::io, Fault::sync, Fault::short_only,
                                         Fault::short_write, Fault::late_error,
                                         Fault::interrupted));

}  // namespace
}  // namespace vellum::crash
