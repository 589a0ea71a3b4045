// The pages of a region outside of commits: rollback, growth, ranges of pages.
#include <algorithm>
#include <cassert>
#include <vector>
#include <vellum/region.hpp>

#include "base/fail.hpp"
#include "base/round_up.hpp"
#include "region/region_impl.hpp"

namespace vellum {

using base::round_up;
using format::PageNumber;
using region::kPageBytes;

void Region::Impl::rollback() {
  assert(background->idle());
  require_base_copies();
  const auto dirty = take_dirty();
  memory->discard(dirty);
  if (memory->size_bytes() > committed_bytes) memory->resize(committed_bytes);
  counters->note_size(memory->size_bytes());
  set_file_bytes(committed_file_bytes);
  if (auto* const file = memory->file_behind())
    file->drop_growth(committed_file_bytes.value_or(committed_bytes));
}

void Region::Impl::grow(std::uint64_t size_bytes) {
  const std::uint64_t size = round_up(size_bytes, kPageBytes);
  if (size < memory->size_bytes()) {
    fail(Errc::invalid_argument, "region '{}' has {} bytes: it cannot shrink to {}", name,
         memory->size_bytes(), size_bytes);
  }
  if (size_bytes > memory->capacity_bytes() || size > memory->capacity_bytes()) {
    fail(Errc::invalid_argument,
         "region '{}' cannot grow to {} bytes: its address space was reserved for {} "
         "(RegionOptions::capacity_bytes)",
         name, size_bytes, memory->capacity_bytes());
  }
  const bool larger = size > memory->size_bytes();
  memory->resize(size);
  assert(memory->size_bytes() == size);
  counters->note_size(memory->size_bytes());
  if (!larger || !file_bytes().has_value()) return;
  extend_file(size);
  set_file_bytes(size);
}

format::PageRange Region::Impl::find_pages(const ByteRange& range) const {
  const auto [offset, length] = range;
  const std::uint64_t size = memory->size_bytes();
  if (offset > size || length > size - offset) {
    fail(Errc::invalid_argument, "the range is not inside region '{}'", name);
  }
  const PageNumber first = offset / kPageBytes;
  return {first, length == 0 ? 0 : (offset + length - 1) / kPageBytes - first + 1};
}

format::PageRange Region::Impl::find_backed_pages(const ByteRange& range) const {
  const auto [first, count] = find_pages(range);
  const PageNumber end = end_page();
  return {first, first < end ? std::min(count, end - first) : 0};
}

std::vector<PageNumber> Region::Impl::pages_of(const std::vector<ByteRange>& ranges) const {
  std::vector<PageNumber> out;
  const PageNumber end = backed_bytes() / kPageBytes;
  for (const ByteRange& range : ranges) {
    const auto [first, count] = find_pages(range);
    for (PageNumber page = first; page < std::min(first + count, end); ++page) out.push_back(page);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void Region::Impl::make_present(PageNumber first, std::size_t count) {
  store::ReadFailure failure;
  if (!memory->make_present(first, count, failure)) raise(failure);
}

void Region::Impl::make_present(std::span<const format::PageRange> ranges) {
  store::ReadFailure failure;
  if (!memory->make_present(ranges, failure)) raise(failure);
}

void Region::Impl::raise(const store::ReadFailure& failure) const {
  if (memory->source() != nullptr) memory->source()->raise(failure);
  fail(Errc::io, "region '{}': {}", name, failure.reason);
}

}  // namespace vellum
