// interfaces/metall/address_range.hpp: address space for a head and the region behind it.
#pragma once

#include <sys/mman.h>

#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vellum/datastore.hpp>

#include "base/fail.hpp"

namespace vellum::datastore {

// The head, one page, is memory. The region's part, from a multiple of 2 MiB, is only reserved.
class AddressRange {
 public:
  AddressRange() = default;
  explicit AddressRange(std::uint64_t region_bytes) : bytes_(region_bytes + 2 * kAlignment) {
    void* const map =
        mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) refuse();
    all_ = static_cast<std::byte*>(map);
    const auto head_end = reinterpret_cast<std::uintptr_t>(all_) + Datastore::kHeadBytes;
    region_ = all_ + Datastore::kHeadBytes + (kAlignment - head_end % kAlignment) % kAlignment;
    if (mprotect(head(), Datastore::kHeadBytes, PROT_READ | PROT_WRITE) != 0) {
      munmap(all_, bytes_);
      refuse();
    }
  }
  ~AddressRange() {
    if (all_ != nullptr) munmap(all_, bytes_);
  }
  AddressRange(AddressRange&& other) noexcept { *this = std::move(other); }
  AddressRange& operator=(AddressRange&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(all_, other.all_);
    std::swap(region_, other.region_);
    return *this;
  }

  std::byte* head() const {
    assert(region_ != nullptr);
    return region_ - Datastore::kHeadBytes;
  }
  std::byte* region() const { return region_; }

 private:
  [[noreturn]] void refuse() const {
    fail(Errc::out_of_memory, "cannot reserve {} bytes of address space: {}", bytes_,
         std::strerror(errno));
  }

  static constexpr std::uint64_t kAlignment = 2u << 20;
  std::uint64_t bytes_ = 0;
  std::byte* all_ = nullptr;
  std::byte* region_ = nullptr;
};

}  // namespace vellum::datastore
