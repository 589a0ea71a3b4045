#include "memory/copies/backing.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {

Backing::Backing(std::size_t capacity_bytes, int file, int sharing)
    : file_(file),
      capacity_(capacity_bytes),
      present_(capacity_bytes / kPageBytes / 8 + sizeof(std::uint64_t)) {
  constexpr int access = PROT_READ | PROT_WRITE;
  void* map = mmap(nullptr, capacity_bytes, access, sharing | MAP_NORESERVE, file, 0);
  if (map == MAP_FAILED) {
    fail(
        Errc::out_of_memory,
        "cannot reserve {} bytes of address space for a region: {}; capacity_bytes sets this size, "
        "and `ulimit -v` limits it",
        capacity_bytes, std::strerror(errno));
  }
  alias_ = static_cast<std::byte*>(map);
  madvise(alias_, capacity_bytes, MADV_DONTFORK);
  madvise(alias_, capacity_bytes, MADV_DONTDUMP);
}

Backing::~Backing() { munmap(alias_, capacity_); }

void Backing::note_base_copies(format::PageNumber first, std::size_t count_pages) noexcept {
  std::int64_t fresh = 0;
  for (std::size_t i = 0; i < count_pages;) {
    const auto page = first + i;
    const auto bit = page % 64;
    const auto n = std::min<std::size_t>(64 - bit, count_pages - i);
    const std::uint64_t mask = bits_below(n) << bit;
    fresh += __builtin_popcountll(mask & ~word(page).fetch_or(mask, std::memory_order_release));
    i += n;
  }
  count(fresh);
}

void Backing::forget_base_copies(format::PageNumber first, std::size_t count_pages) noexcept {
  std::int64_t forgotten = 0;
  for (std::size_t i = 0; i < count_pages; ++i) {
    const std::uint64_t bit = 1ULL << ((first + i) % 64);
    forgotten += (word(first + i).fetch_and(~bit, std::memory_order_acq_rel) & bit) != 0;
  }
  count(-forgotten);
}

std::uint64_t Backing::base_copies_in(format::PageNumber first,
                                      std::size_t count_pages) const noexcept {
  assert(count_pages <= 64);
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < count_pages; ++i)
    mask |= std::uint64_t{has_base_copy(first + i)} << i;
  return mask;
}

}  // namespace vellum::region
