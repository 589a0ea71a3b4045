// base/files/inode_lock.hpp: a lock "this file is in use by Vellum" that is not on the file itself.
//
// A lock on a user's file would conflict with programs that lock it themselves. Hence these locks
// are on bytes of one file for the whole machine, /dev/shm/vellum-images, at an offset computed
// from the inode (fcntl(2), F_OFD_SETLK). They end with their process; a child of fork(2) has none
// of them. A process needs one descriptor for all. Containers with a /dev/shm of their own do not
// see each other's locks; a branch has its own lock in the store. Without /dev/shm, a lock excludes
// only other holders in this process.
#pragma once

#include <cstdint>
#include <memory>

#include "base/files/file.hpp"

namespace vellum::base {

class InodeLock {
 public:
  enum class Mode { shared, exclusive };
  // Null: another holder, in this process or any other, excludes it. Files of a simulated file
  // system have no descriptor. For them, this is the File's own lock.
  static std::unique_ptr<InodeLock> try_take(File& of, Mode mode);
  ~InodeLock();
  // fork(2) takes the locks of pthread_atfork(3) in reverse order of their registration. Call
  // before registering one that is held while an InodeLock is taken or released.
  static void prepare_forks();

  InodeLock(const InodeLock&) = delete;
  InodeLock& operator=(const InodeLock&) = delete;

 private:
  InodeLock(std::uint64_t byte, bool held) noexcept : byte_(byte), held_(held) {}

  const std::uint64_t byte_;
  const bool held_;  // false: it is the File's own lock
};

}  // namespace vellum::base
