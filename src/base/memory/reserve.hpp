// base/memory/reserve.hpp: address space that uses no memory until it is touched.
//
// Caches and tables of the fault handler are reserved here when a region opens. The handler then
// never allocates: the kernel provides zeroed pages on first touch.
#pragma once

#include <cstddef>
#include <span>

namespace vellum::base {

class Reservation {
 public:
  Reservation() = default;
  explicit Reservation(
      std::size_t bytes);  // mmap(MAP_NORESERVE), MADV_DONTFORK not set; throws Errc::out_of_memory
  ~Reservation();
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace vellum::base
