// run/files/own_descriptors.hpp: the library's own descriptors.
//
// The program's close(2) and close_range(3) skip them, and a child of fork(2) closes them: through
// them it would hold the parent's locks.
//
// Nothing allocates under the lock.
#pragma once

#include <array>
#include <mutex>

#include "run/files/descriptors.hpp"

namespace vellum::preload {

// Threads: any.
class OwnDescriptors {
 public:
  // Whether the descriptor is the library's. The C library closes some of these by itself, as
  // closedir(3) does: the number may be another file's by then.
  bool has(int fd);
  void note(int fd, bool is);
  // A new descriptor of the file from the library's own, which is open for reading and writing; -1:
  // none.
  int reopened(const DescriptorIdentity& file);

  // For fork(2), in this order; lock() follows FileStates::mutex(). The parent waits until the
  // child has closed the descriptors: otherwise it could close a file and fail to reopen it.
  void lock() { mutex_.lock(); }
  void make_pipe();
  void close_all();  // in the child
  void await_child(bool child);
  void unlock() { mutex_.unlock(); }

 private:
  static std::array<DescriptorIdentity, Descriptors::kMaxDescriptors> identities_;  // under mutex_
  std::mutex mutex_;
  bool any_ = false;           // under mutex_
  int forking_[2] = {-1, -1};  // a pipe that the child closes
};

}  // namespace vellum::preload
