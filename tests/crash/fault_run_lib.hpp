// A workload on a real directory with one fault in it, and the conditions that must hold
// afterwards.
#pragma once

#include <functional>
#include <string>

#include "crash/session_lib.hpp"
#include "crash/syscall_seam_lib.hpp"

namespace vellum::crash {

struct Workload {
  const char* name;
  std::function<void(Session&)> run;  // from an empty directory
};
std::vector<Workload> fault_workloads();

struct FaultOutcome {
  bool hit = false;     // the workload has an nth call
  std::string problem;  // empty: all conditions hold
};

// Runs the workload in `directory`, which is emptied first; the nth call fails. Afterwards:
//   - an error was thrown, unless the fault must not show or the call is optional;
//   - the head is the last commit; after a failed sync it may be the commit in progress;
//   - the same writer takes the next commit, or refuses it as poisoned and states the reason;
//   - a new program finds the last commit, takes another, and verifies;
//   - no descriptor is left open, and tmp holds only files that could not be unlinked.
FaultOutcome run_with_fault(const Workload& workload, const std::string& directory, Fault fault,
                            std::uint64_t nth, bool sticky);

std::size_t open_descriptors();

}  // namespace vellum::crash
