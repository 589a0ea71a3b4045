// tests/support/file_lock.hpp: flock(2) for file systems in memory: who holds a file, and how.
#pragma once

#include <set>

namespace vellum::test {

class FileLock {
 public:
  // A holder that asks again changes from one kind to the other.
  bool lock(const void* holder, bool exclusive) {
    const bool alone = holders_.empty() || (holders_.size() == 1 && holders_.contains(holder));
    if (!alone && (exclusive || exclusive_)) return false;
    holders_.insert(holder);
    exclusive_ = exclusive;
    return true;
  }
  void unlock(const void* holder) { holders_.erase(holder); }

 private:
  std::set<const void*> holders_;
  bool exclusive_ = false;
};

}  // namespace vellum::test
