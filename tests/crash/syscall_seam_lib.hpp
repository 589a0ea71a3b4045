// Makes the nth system call of the file layer fail, or the process die at it, below
// base::posix_fs().
//
// This program defines the C library's file calls itself (syscall_seam_lib.cpp). The real file
// layer, with its loops for interrupted and short transfers, meets errors that no file system
// produces on demand.
#pragma once

#include <atomic>
#include <cstdint>

namespace vellum::crash {

enum class Fault {
  no_space,     // ENOSPC: writes, allocations, new names, and fdatasync (delayed allocation)
  io,           // EIO: every call
  sync,         // EIO: fdatasync and fsync only
  short_only,   // a read or write moves half of its bytes, without an error
  short_write,  // a write moves half of its bytes; the next one fails with ENOSPC
  late_error,   // EIO after the data has been written
  interrupted,  // EINTR: every call that may be interrupted; the repeated call succeeds
  memory        // ENOMEM: mmap, mprotect, memfd_create, and pages for a memfd
};
const char* fault_name(Fault fault);

// While it lives, counts the calls that the fault can hit, and makes the nth fail; when sticky, all
// from the nth on.
class FaultScope {
 public:
  FaultScope(Fault fault, std::uint64_t nth, bool sticky);
  ~FaultScope();
  FaultScope(const FaultScope&) = delete;
  FaultScope& operator=(const FaultScope&) = delete;
  static bool hit();              // the nth call was reached
  static const char* hit_call();  // its name
  static void repair();           // a sticky fault ends
  static void strike_again();     // and starts again
};

std::uint64_t faults_injected();  // since the program began

// How a process died, for its parent to read: stored in memory that both share.
struct KillReport {
  std::atomic<std::uint64_t> calls{0};  // made so far, including the one that it died at
  std::atomic<bool> killed{false};
  char call[16] = {};             // its name
  bool in_fault_handler = false;  // on the thread that died, SIGBUS or SIGSEGV was being handled
  bool checkpointing = false;     // a pack has been changed since begin_operation()
  bool in_background = false;     // a thread other than the process's first changes a pack
};

enum class KillMoment { before_call, after_call };
enum class KillCalls { all, in_background };  // those that count

// From now on this process counts its file calls, also in signal handlers, and dies by SIGKILL
// exactly before or after the nth (0: never). Cannot be undone: for child processes.
void kill_at_call(std::uint64_t nth, KillMoment moment, KillCalls calls, KillReport* report);
void begin_operation();

}  // namespace vellum::crash
