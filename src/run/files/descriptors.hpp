// run/files/descriptors.hpp: the recorded facts about the process's descriptors.
//
// In fixed memory: an allocator may be the first caller. A fact costs one load.
#pragma once

#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>

namespace vellum::preload {

struct DescriptorIdentity {
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const DescriptorIdentity&, const DescriptorIdentity&) = default;
};

// Threads: any, without a lock. Facts about watched files change under FileStates::mutex().
class Descriptors {
 public:
  static constexpr int kMaxDescriptors = 1 << 20;
  // The facts; 0: none.
  static constexpr std::uint32_t kTarget = 0x000f'ffff;       // 1 + its number in OpenFiles
  static constexpr std::uint32_t kSynchronous = 0x0010'0000;  // O_SYNC, O_DSYNC
  static constexpr std::uint32_t kWrites = 0x0020'0000;
  static constexpr std::uint32_t kReads = 0x0040'0000;
  static constexpr std::uint32_t kMayAppend = 0x0080'0000;  // only the kernel knows for sure
  static constexpr std::uint32_t kLibrarys = 0x0100'0000;   // the library's own (OwnDescriptors)
  static constexpr std::uint32_t kReopened = 0x0200'0000;   // Files has the original one
  static constexpr std::size_t kNoTarget = kTarget;

  static std::uint32_t facts(int fd) noexcept {
    return fd < 0 || fd >= kMaxDescriptors ? 0 : at(fd).load(std::memory_order_relaxed);
  }
  // Whether it is a watched file's.
  static bool known(int fd) noexcept { return (facts(fd) & kTarget) != 0; }
  // The file's number in OpenFiles; kNoTarget: the descriptor is not known().
  static std::size_t target(int fd) noexcept {
    const std::uint32_t number = facts(fd) & kTarget;
    return number == 0 ? kNoTarget : number - 1;
  }
  static bool synchronous(int fd) noexcept { return (facts(fd) & kSynchronous) != 0; }
  // The access modes of a descriptor that is known().
  static bool reads(int fd) noexcept { return (facts(fd) & kReads) != 0; }
  static bool writes(int fd) noexcept { return (facts(fd) & kWrites) != 0; }
  // Whether it may have O_APPEND; if not, no system call is needed.
  static bool may_append(int fd) noexcept { return (facts(fd) & kMayAppend) != 0; }
  // Duplicates share the flag, so every descriptor of the file may have it.
  static void note_append(int fd) noexcept {
    const std::size_t number = target(fd);
    if (number == kNoTarget) return;
    for (unsigned other = next(0); other != UINT_MAX; other = next(other + 1))
      if (target(static_cast<int>(other)) == number) add(static_cast<int>(other), kMayAppend);
  }

  // The first descriptor from `fd` on that has facts; UINT_MAX if there is none.
  static unsigned next(unsigned fd) noexcept {
    for (const unsigned end = end_; fd < end; ++fd)
      if (facts(static_cast<int>(fd)) != 0) return fd;
    return UINT_MAX;
  }

  // REQUIRES, of each: fd < kMaxDescriptors.
  static void set(int fd, std::uint32_t facts) noexcept {
    at(fd) = facts;
    const auto end = static_cast<unsigned>(fd) + 1;
    for (unsigned known = end_; known < end && !end_.compare_exchange_weak(known, end);) {
    }
  }
  static void add(int fd, std::uint32_t facts) noexcept { at(fd) |= facts; }
  static void clear(int fd) noexcept { at(fd) = 0; }

 private:
  static std::atomic<std::uint32_t>& at(int fd) noexcept {
    return facts_[static_cast<std::size_t>(fd)];
  }

  static inline std::array<std::atomic<std::uint32_t>, kMaxDescriptors> facts_;
  static inline std::atomic<unsigned> end_{0};  // one more than the highest that ever had facts
};

}  // namespace vellum::preload
