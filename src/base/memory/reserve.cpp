// base/memory/reserve.cpp: see reserve.hpp.
#include "base/memory/reserve.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::base {

Reservation::Reservation(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    fail(Errc::out_of_memory,
         "cannot reserve {} bytes of address space (`ulimit -v` shows the limit): {}", bytes,
         std::generic_category().message(errno));
  }
  data_ = static_cast<std::byte*>(address);
}

Reservation::~Reservation() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Reservation::Reservation(Reservation&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace vellum::base
