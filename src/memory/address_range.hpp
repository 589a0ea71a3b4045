// memory/address_range.hpp: the address space of a region, mapped over its base copies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/options.hpp"

namespace vellum::region {

class AddressRange {
 public:
  // Maps `file` privately, without access, as `options` say. Throws Errc::busy (address taken),
  // out_of_memory.
  AddressRange(const MemoryOptions& options, int file);
  // Unmaps. Over a reservation, address space without access is left mapped.
  ~AddressRange();
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::byte* end() const noexcept { return data_ + bytes_; }
  std::size_t bytes() const noexcept { return bytes_; }
  // The mapping outlives this object; the caller unmaps it.
  void leave_mapped() noexcept { left_mapped_ = true; }

 private:
  const std::size_t bytes_;
  const bool over_reservation_;
  bool left_mapped_ = false;
  std::byte* data_ = nullptr;
};

// The address of a branch's region at its first opening: far from the addresses of the loader and
// malloc, so it is likely to be free the next time, too.
std::uint64_t far_address(std::uint64_t branch_id) noexcept;

}  // namespace vellum::region
