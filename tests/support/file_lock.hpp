// tests/support/file_lock.hpp: the locks of a file for file systems in memory: who holds it, and
// how.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace vellum::test {

class FileLock {
 public:
  using Holder = const void*;

  // flock(2). A holder that asks again changes from one kind to the other.
  bool lock(Holder holder, bool exclusive) {
    const bool alone = holders_.empty() || (holders_.size() == 1 && holders_.contains(holder));
    if (!alone && (exclusive || exclusive_)) return false;
    holders_.insert(holder);
    exclusive_ = exclusive;
    return true;
  }
  // What File::mark_byte() does.
  void mark(Holder holder, std::uint64_t offset) { marks_[offset].insert(holder); }
  void unmark(Holder holder, std::uint64_t offset) { marks_[offset].erase(holder); }
  std::vector<std::uint64_t> marks_of_others(Holder holder) const {
    std::vector<std::uint64_t> out;
    for (const auto& [offset, holders] : marks_) {
      if (holders.size() > (holders.contains(holder) ? 1 : 0)) out.push_back(offset);
    }
    return out;
  }
  // The file is closed.
  void unlock(Holder holder) {
    holders_.erase(holder);
    for (auto& [offset, holders] : marks_) holders.erase(holder);
  }

 private:
  std::set<Holder> holders_;
  bool exclusive_ = false;
  std::map<std::uint64_t, std::set<Holder>> marks_;
};

}  // namespace vellum::test
