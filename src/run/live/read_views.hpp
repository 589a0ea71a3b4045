// run/live/read_views.hpp: read-only mappings that are older than the live file. The program has
// mapped a file for reading before it opens the file for writing. The kernel made that mapping, and
// it shows the last commit. To show later writes as well, it becomes a private mapping of the same
// pages at the same address, and writes to the live file's memory are copied there. When the file
// is no longer live, it contains everything, and the mapping becomes shared again. REQUIRES: the
// program stores to no mapping of the file, because those stores would not be copied. Threads: any.
// Nothing allocates with the lock held, because allocators unmap memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/threads/handler_lock.hpp"

namespace vellum::preload {

class ReadViews {
 public:
  static constexpr std::size_t kMax = 4096;

  // `data`: the live file's memory. `fd`: the file, open for reading. False: nothing has changed.
  bool add(const std::byte* data, int fd, std::byte* begin, std::byte* end,
           std::uint64_t offset_bytes) noexcept;
  bool any() const noexcept { return count_ != 0; }
  bool any_of(const std::byte* data) noexcept;
  bool contains(const void* address) noexcept;
  // Call after the memory has changed there.
  void show(const std::byte* data, std::uint64_t offset_bytes, std::uint64_t length_bytes) noexcept;
  // Call before something else is mapped at these addresses.
  void forget(const void* address, std::size_t length_bytes) noexcept;
  // REQUIRES: file and memory have the same content. Without a descriptor the views remain private.
  void release(const std::byte* data, int fd) noexcept;

  // For fork(2): the lock must be free in the child.
  void lock() noexcept { lock_.lock(); }
  void unlock() noexcept { lock_.unlock(); }

 private:
  struct View {
    const std::byte* data;
    std::byte *begin, *end;
    std::uint64_t offset_bytes;  // in the file, of `begin`
  };
  void remove(std::size_t i) noexcept { views_[i] = views_[--count_]; }

  base::HandlerLock lock_;
  std::atomic<std::size_t> count_{0};
  std::array<View, kMax> views_{};
};

// The views of all live files.
ReadViews& read_views() noexcept;

}  // namespace vellum::preload
