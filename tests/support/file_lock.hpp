// tests/support/file_lock.hpp: the locks of a file, for file systems in memory: the holder, and the
// kind of lock.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace vellum::test {

class FileLock {
 public:
  using Holder = const void*;

  // flock(2). A holder that locks again changes from one kind to the other.
  bool lock(Holder holder, bool exclusive) {
    const bool alone = holders_.empty() || (holders_.size() == 1 && holders_.contains(holder));
    if (!alone && (exclusive || exclusive_)) return false;
    holders_.insert(holder);
    exclusive_ = exclusive;
    return true;
  }
  // Implements File::pin_byte().
  bool pin(Holder holder, std::uint64_t offset) {
    if (locked_by_another(holder, offset)) return false;
    pins_[offset].insert(holder);
    return true;
  }
  // Implements File::try_lock_byte() and File::byte_locked().
  bool lock_byte(Holder holder, std::uint64_t offset) {
    const auto& pins = pins_[offset];
    if (pins.size() > (pins.contains(holder) ? 1 : 0)) return false;
    pins_[offset].insert(holder);
    alone_[offset] = holder;
    return true;
  }
  bool locked_by_another(Holder holder, std::uint64_t offset) const {
    const auto at = alone_.find(offset);
    return at != alone_.end() && at->second != holder;
  }
  void unpin(Holder holder, std::uint64_t offset) {
    pins_[offset].erase(holder);
    std::erase_if(alone_,
                  [&](const auto& line) { return line.first == offset && line.second == holder; });
  }
  std::vector<std::uint64_t> pins_of_others(Holder holder) const {
    std::vector<std::uint64_t> out;
    for (const auto& [offset, holders] : pins_) {
      if (holders.size() > (holders.contains(holder) ? 1 : 0)) out.push_back(offset);
    }
    return out;
  }
  // The file is closed.
  void unlock(Holder holder) {
    holders_.erase(holder);
    for (auto& [offset, holders] : pins_) holders.erase(holder);
    std::erase_if(alone_, [&](const auto& line) { return line.second == holder; });
  }

 private:
  std::set<Holder> holders_;
  bool exclusive_ = false;
  std::map<std::uint64_t, std::set<Holder>> pins_;
  std::map<std::uint64_t, Holder> alone_;  // the bytes that one holder has locked exclusively
};

}  // namespace vellum::test
