// base/files/inode_lock.hpp: a lock that says "this file is in use by Vellum", beside the file.
//
// A lock on a user's file would be met by programs that lock it themselves. So these locks lie on
// bytes of one file for the whole machine, /dev/shm/vellum-images, whose offset comes from the inode
// (fcntl(2), F_OFD_SETLK). They die with their process; a child of fork(2) has none of them. A process
// needs one descriptor for all. Containers with a /dev/shm of their own do not see each other's; a
// branch has its own lock in the store. Where there is no /dev/shm, only this process is excluded.
#pragma once

#include <cstdint>
#include <memory>

#include "base/files/file.hpp"

namespace vellum::base {

class InodeLock {
 public:
  enum class Kind { shared, exclusive };
  // null: another holder, in this process or any other, excludes it. For files of a simulated file
  // system, which have no descriptor, the lock is the File's own.
  static std::unique_ptr<InodeLock> try_take(File& of, Kind kind);
  ~InodeLock();
  InodeLock(const InodeLock&) = delete;
  InodeLock& operator=(const InodeLock&) = delete;

 private:
  InodeLock(std::uint64_t byte, bool held) noexcept : byte_(byte), held_(held) {}

  const std::uint64_t byte_;
  const bool held_;  // false: the File's own lock is it
};

}  // namespace vellum::base
