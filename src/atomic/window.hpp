// atomic/window.hpp: where an atomic file lies in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cards/tracked_range.hpp"

namespace vellum::atomic {

// Address space for a file: tracked by cards, or only reserved, at an address that `base_address`
// or chance gives (AtomicFileOptions::base_address).
class Window {
 public:
  Window(std::uint64_t capacity_bytes, std::uint64_t base_address, bool cards);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }
  cards::TrackedRange* tracked() const noexcept { return tracked_.get(); }  // nullptr: no cards

  // It is not unmapped with this object.
  void leave_mapped() noexcept { left_ = true; }
  // Maps the file privately over all of it; what lies past `size_bytes` cannot be touched.
  void map(int descriptor, std::uint64_t size_bytes);
  // Lets what lies before `size_bytes` be touched.
  void open_up(std::uint64_t size_bytes);
  // What the program has stored to [begin_bytes, end_bytes) is gone: it is as in the file, or
  // cannot be touched. Of a page that goes on before it, it is zero.
  void forget(std::uint64_t begin_bytes, std::uint64_t end_bytes);

 private:
  std::byte* data_ = nullptr;
  std::uint64_t capacity_bytes_ = 0;
  std::unique_ptr<cards::TrackedRange> tracked_;
  bool left_ = false;
};

}  // namespace vellum::atomic
