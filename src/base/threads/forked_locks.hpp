// base/threads/forked_locks.hpp: locks that a child of fork(2) must not hold.
//
// A lock of flock(2), or of fcntl(2) with F_OFD_SETLK, belongs to the open file, which a child
// shares. The child would hold its parent's locks even after the parent was killed. Before fork(2)
// returns in the child, it therefore reopens these files read-only with the same descriptors. There
// they hold no locks. Children of vfork(2), clone(2) and posix_spawn(3) do not: they soon call
// exec(3), which closes the files.
#pragma once

namespace vellum::base {

// One open file, from before its first lock until after it is unlocked, and before it is closed.
class ForkedLocks {
 public:
  ForkedLocks() noexcept = default;
  ~ForkedLocks() { forget(); }
  ForkedLocks(const ForkedLocks&) = delete;
  ForkedLocks& operator=(const ForkedLocks&) = delete;

  // Throws Errc::out_of_memory. Further calls have no effect. REQUIRES: the same `fd` in all calls.
  void keep_from_children(int fd);
  void forget() noexcept;

  struct Entry;

 private:
  Entry* entry_ = nullptr;
};

}  // namespace vellum::base
