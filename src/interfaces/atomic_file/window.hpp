// interfaces/atomic_file/window.hpp: the address range of an atomic file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "memory/cards/tracked_range.hpp"

namespace vellum::atomic_file {

// Address space for a file, tracked by cards or only reserved. `base_address`: see
// AtomicFileOptions::base_address.
class Window {
 public:
  Window(std::uint64_t capacity_bytes, std::uint64_t base_address, bool cards);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }
  cards::TrackedRange* tracked() const noexcept { return tracked_.get(); }  // nullptr: no cards

  // Keeps the memory mapped after this object.
  void leave_mapped() noexcept { left_ = true; }
  // Maps the file privately over the whole window; bytes past `size_bytes` are inaccessible.
  void map(int descriptor, std::uint64_t size_bytes);
  // Makes the bytes before `size_bytes` accessible. REQUIRES: within the capacity.
  void open_up(std::uint64_t size_bytes);
  // Discards the program's stores to [begin_bytes, end_bytes) and makes its pages inaccessible. In
  // a page that begins before the range, the range becomes zero. REQUIRES: within the capacity.
  void forget(std::uint64_t begin_bytes, std::uint64_t end_bytes);

 private:
  std::byte* data_ = nullptr;
  std::uint64_t capacity_bytes_ = 0;
  std::unique_ptr<cards::TrackedRange> tracked_;
  bool left_ = false;
};

}  // namespace vellum::atomic_file
