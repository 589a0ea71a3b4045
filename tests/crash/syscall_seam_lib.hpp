// Makes the nth system call of the file layer fail, below base::posix_fs().
//
// This program defines the C library's file calls itself (syscall_seam_lib.cpp), so that the real
// file layer, with its loops for interrupted and short transfers, meets errors that no file system
// gives on demand.
#pragma once

#include <cstdint>

namespace vellum::crash {

enum class Fault {
  no_space,     // ENOSPC: writes, allocations, new names, and fdatasync (delayed allocation)
  io,           // EIO: every call
  sync,         // EIO: fdatasync and fsync only
  short_only,   // a read or write moves half of its bytes, and no error
  short_write,  // a write moves half of its bytes; the next one says ENOSPC
  late_error,   // EIO after the write has been done
  interrupted,  // EINTR: every call that may be interrupted; calling again succeeds
  memory        // ENOMEM: mmap, mprotect, memfd_create, and pages for a memfd
};
const char* fault_name(Fault fault);

// While it lives, calls that the fault can hit are counted, and the nth fails; all from the nth on
// when sticky.
class FaultScope {
 public:
  FaultScope(Fault fault, std::uint64_t nth, bool sticky);
  ~FaultScope();
  FaultScope(const FaultScope&) = delete;
  FaultScope& operator=(const FaultScope&) = delete;
  static bool hit();              // the nth call was reached
  static const char* hit_call();  // its name
  static void mend();             // a sticky fault ends
  static void strike_again();     // and comes back
};

std::uint64_t faults_injected();  // since the program began

}  // namespace vellum::crash
