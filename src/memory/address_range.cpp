#include "memory/address_range.hpp"

#include <sys/mman.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/memory/thread_sanitizer.hpp"
#include "base/round_up.hpp"
#include "memory/cards/table.hpp"

namespace vellum::region {
namespace {

constexpr int kFlags = MAP_PRIVATE | MAP_NORESERVE;

// Code compiled by vellum-clang accesses the cards of all addresses in the window, so the cards
// must exist. Where they cannot be reserved, that code does not run.
void reserve_cards_of(std::uint64_t address) {
  if (!cards::in_window(address)) return;
  try {
    cards::reserve_table();
  } catch (const Error&) {
  }
}

[[noreturn]] void refuse_taken(std::uint64_t address, std::size_t bytes) {
  fail(Errc::busy, "address {:#x} is taken: cannot map {} bytes there", address, bytes);
}

// MAP_FAILED: the address is taken or not available.
void* map_at(std::uint64_t address, std::size_t bytes, int file) {
  if (!base::may_map_at(address)) return MAP_FAILED;
  void* const wanted = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  void* const map = mmap(wanted, bytes, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, file, 0);
  if (map == MAP_FAILED || map == wanted) return map;
  munmap(map, bytes);  // a kernel or sanitizer that treats it as a hint
  return MAP_FAILED;
}

// A region starts at a multiple of 2 MiB, so address space for the alignment is reserved, too.
void* map_anywhere(std::size_t bytes, int file) {
  void* const room = mmap(nullptr, bytes + kTableBytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return MAP_FAILED;
  const auto start = reinterpret_cast<std::uintptr_t>(room);
  const auto aligned = base::round_up(start, kTableBytes);
  if (aligned > start) munmap(room, aligned - start);
  auto* const at = static_cast<std::byte*>(room) + (aligned - start);
  const std::size_t tail = start + kTableBytes - aligned;
  if (tail > 0) munmap(at + bytes, tail);
  return mmap(at, bytes, PROT_NONE, kFlags | MAP_FIXED, file, 0);
}

void* map_over_reservation(std::uint64_t address, std::size_t bytes, int file) {
  assert(address != 0 && address % kPageBytes == 0);
  void* const wanted = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  return mmap(wanted, bytes, PROT_NONE, kFlags | MAP_FIXED, file, 0);
}

void* map(const MemoryOptions& options, int file) {
  const std::uint64_t wanted = options.wanted_address;
  const std::size_t bytes = options.capacity_bytes;
  if (options.over_reservation) return map_over_reservation(wanted, bytes, file);
  void* const there = wanted != 0 ? map_at(wanted, bytes, file) : MAP_FAILED;
  if (there != MAP_FAILED) return there;
  if (wanted != 0 && options.address_required) refuse_taken(wanted, bytes);
  return map_anywhere(bytes, file);
}

}  // namespace

AddressRange::AddressRange(const MemoryOptions& options, int file)
    : bytes_(options.capacity_bytes), over_reservation_(options.over_reservation) {
  assert(file >= 0 && bytes_ % kPageBytes == 0);
  void* const at = map(options, file);
  if (at == MAP_FAILED) {
    fail(
        Errc::out_of_memory,
        "cannot reserve {} bytes of address space for a region: {}; capacity_bytes sets this size, "
        "and `ulimit -v` limits it",
        bytes_, std::strerror(errno));
  }
  data_ = static_cast<std::byte*>(at);
  reserve_cards_of(reinterpret_cast<std::uintptr_t>(at));
  // A child would have holes without the engine's service, so it gets no mapping.
  madvise(data_, bytes_, MADV_DONTFORK);
}

AddressRange::~AddressRange() {
  if (left_mapped_) return;
  if (over_reservation_) {
    // No hole for another thread's mapping: the caller unmaps the range later.
    mmap(data_, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  } else {
    munmap(data_, bytes_);
  }
}

// The area is above the window of the cards, which is for tracked regions, and above their table.
std::uint64_t far_address(std::uint64_t branch_id) noexcept {
  constexpr std::uint64_t kArea = 0x380000000000;  // 56 TiB up
  constexpr std::uint64_t kSlotBytes = 64ULL << 30;
  constexpr std::uint64_t kSlots = 384;  // 24 TiB: AddressSanitizer's heap begins at 80 TiB
  const std::uint64_t hash = branch_id * 0x9E3779B97F4A7C15ULL >> 54;
  if (!base::in_thread_sanitizer()) return kArea + hash % kSlots * kSlotBytes;
  // 448 GiB: above, the kernel chooses addresses.
  return base::kThreadSanitizerMappings + hash % 7 * kSlotBytes;
}

}  // namespace vellum::region
