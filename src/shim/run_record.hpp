// shim/run_record.hpp: what the processes of a run report to `vellum run`.
//
// The record is a memfd of `vellum run`, which each process maps from /proc/PID/fd. So there is no
// file to remove, a process that is killed has reported all that it counted, and counting takes no
// lock and allocates nothing.
//
// A process that cannot map it (another user, another PID namespace, a chroot) reports nothing. The
// program that starts such a process says so first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vellum::shim {

enum class ProgramKind : std::uint32_t;

// "PATH NONCE": the record, and the number that it begins with.
inline constexpr const char* kRecordVariable = "VELLUM_RUN_RECORD";

struct RunRecord {
  static constexpr std::size_t kMostTargets = 4096, kMostPrograms = 64;

  struct Target {                        // in the order of Config::targets
    std::atomic<std::uint32_t> opened;   // times, of all processes
    std::atomic<std::uint32_t> changed;  // times that a live file was found changed by others
  };
  // A program of which the library does not see all that it does.
  struct Program {
    std::atomic<std::uint64_t> hash;  // of the path; 0: free
    std::atomic<std::uint32_t> kind;  // 0: the path is not whole yet
    char path[500];                   // cut off when longer
  };

  std::uint64_t nonce;
  std::atomic<std::uint32_t> unreachable;  // processes that were started and cannot report
  Target targets[kMostTargets];
  Program programs[kMostPrograms];
};

// In a process of the run. None of these does anything where there is no record.
void attach_record() noexcept;  // at the beginning, while the environment is as it was given
void note_opened(std::size_t target) noexcept;
void note_changed(std::size_t target) noexcept;
// Whether nobody has noted it before: the caller then tells of it.
bool note_program(const char* path, ProgramKind kind) noexcept;
// Before this process becomes, or starts, another program.
void note_whether_record_is_reachable() noexcept;

}  // namespace vellum::shim
