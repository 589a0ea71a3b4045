// run/run/run_record.hpp: the reports of a run's processes to `vellum run`. The record is a memfd
// of `vellum run`, which each process maps from /proc/PID/fd. No file has to be removed, the counts
// of a killed process are kept, and counting takes no lock and allocates nothing.
//
// A process that cannot map it (another user, another PID namespace, a chroot) reports nothing. The
// program that starts that process reports this first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vellum::preload {

enum class ProgramKind : std::uint32_t;

// "PATH NONCE": the record's path, and the number at its beginning.
inline constexpr const char* kRecordVariable = "VELLUM_RUN_RECORD";

struct RunRecord {
  static constexpr std::size_t kMaxTargets = 4096, kMaxPrograms = 64;

  struct TargetCounts {                 // in the order of Config::targets
    std::atomic<std::uint32_t> opened;  // times, by all processes
    std::atomic<std::uint32_t>
        changed;  // times that a live file was found changed by other programs
  };
  // A program that the library does not intercept completely.
  struct Program {
    std::atomic<std::uint64_t> hash;  // of the path; 0: free
    std::atomic<std::uint32_t> kind;  // 0: the path is still incomplete
    char path[500];                   // truncated if longer
  };

  std::uint64_t nonce;
  std::atomic<std::uint32_t> unreachable;  // processes that were started but cannot report
  TargetCounts targets[kMaxTargets];
  Program programs[kMaxPrograms];
};

// For a process of the run. None of these does anything if there is no record.
void attach_record() noexcept;  // at the start, while the environment is unchanged
void note_opened(std::size_t target) noexcept;
void note_changed(std::size_t target) noexcept;
// Whether this is the first note of the program: the caller then reports it.
bool note_program(const char* path, ProgramKind kind) noexcept;
// Call before this process becomes, or starts, another program.
void note_whether_record_is_reachable() noexcept;

}  // namespace vellum::preload
