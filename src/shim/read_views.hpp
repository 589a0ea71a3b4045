// shim/read_views.hpp: what the program has mapped of a file, to read, before it opened that to
// write.
//
// Such a mapping is the kernel's, and shows the last commit. So that it shows what has been written
// since, too, it becomes a private mapping of the same pages, at the same address, and what is
// written to the live file's memory is copied there. When the file is live no more, the file holds
// all of it, and the mapping is a shared one again.
//
// REQUIRES: the program stores to no mapping of the file, as nobody sees that here.
//
// Threads: any. Nobody allocates with its lock held, as allocators unmap memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/handler_lock.hpp"

namespace vellum::shim {

class ReadViews {
 public:
  static constexpr std::size_t kMost = 4096;

  // `data`: the live file's memory. `fd`: of the file, to read. False: all is as before.
  bool add(const std::byte* data, int fd, std::byte* begin, std::byte* end,
           std::uint64_t offset_bytes) noexcept;
  bool any() const noexcept { return count_ != 0; }
  bool any_of(const std::byte* data) noexcept;
  bool contains(const void* address) noexcept;
  // After the memory has been changed there.
  void show(const std::byte* data, std::uint64_t offset_bytes, std::uint64_t length_bytes) noexcept;
  // Before something else comes to these addresses.
  void forget(const void* address, std::size_t length_bytes) noexcept;
  // The file holds what the memory does. Without a descriptor they stay private mappings of it.
  void release(const std::byte* data, int fd) noexcept;

  // For fork(2): a child must find it free.
  void lock() noexcept { lock_.lock(); }
  void unlock() noexcept { lock_.unlock(); }

 private:
  struct View {
    const std::byte* data;
    std::byte *begin, *end;
    std::uint64_t offset_bytes;  // of the file, at `begin`
  };
  void remove(std::size_t i) noexcept { views_[i] = views_[--count_]; }

  base::HandlerLock lock_;
  std::atomic<std::size_t> count_{0};
  std::array<View, kMost> views_{};
};

// Of all live files.
ReadViews& read_views() noexcept;

}  // namespace vellum::shim
