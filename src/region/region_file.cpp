// The plain file behind a region: its length, and stores past its end.
#include <vellum/cards.h>
#include <algorithm>
#include <cassert>
#include <string>
#include <vellum/region.hpp>

#include "base/fail.hpp"
#include "base/memory/zeros.hpp"
#include "format/wire/types.hpp"
#include "region/call_guards.hpp"
#include "region/region_impl.hpp"

namespace vellum {

using format::PageNumber;
using region::kPageBytes;

namespace {

// Calls `act` with each part of the range, at most a chunk, that may have content.
template <typename Act>
void for_each_content(const region::RegionMemory& memory, std::byte* from, const std::byte* end,
                      const Act& act) {
  const std::size_t chunk_bytes = memory.chunk_pages() * kPageBytes;
  for (std::byte* at = from; at < end;) {
    const auto offset = static_cast<std::size_t>(at - memory.data());
    const auto left = static_cast<std::size_t>(end - at) / kPageBytes;
    if (const std::size_t zeros = memory.untouched_zeros(offset / kPageBytes, left); zeros > 1) {
      at += zeros * kPageBytes - offset % kPageBytes;
      continue;
    }
    const std::size_t to_next = chunk_bytes - offset % chunk_bytes;
    const auto n = std::min(to_next, static_cast<std::size_t>(end - at));
    if (!memory.holds_nothing(offset / kPageBytes)) act(at, n);
    at += n;
  }
}

}  // namespace

void Region::Impl::resize_file(std::uint64_t bytes, std::uint64_t room_bytes) {
  if (bytes > memory->capacity_bytes()) {
    fail(Errc::invalid_argument,
         "region '{}': a file of {} bytes does not fit into its address space of {} "
         "(RegionOptions::capacity_bytes)",
         name, bytes, memory->capacity_bytes());
  }
  const std::uint64_t was = file_bytes().value_or(memory->size_bytes());
  // From now on the file's size is independent of the region's.
  extend_file(std::min(bytes, backed_bytes()));
  if (bytes > memory->size_bytes()) {
    const std::uint64_t room = std::min(room_bytes, memory->capacity_bytes() - bytes);
    memory->resize(format::pages_in(bytes + room) * kPageBytes);
  }
  assert(bytes <= memory->size_bytes());
  if (bytes < was) zero(memory->data() + bytes, memory->data() + backed_bytes());
  extend_file(bytes);
  set_file_bytes(bytes);
}

bool Region::Impl::write_tail(std::uint64_t from_bytes) {
  auto* const file = memory->file_behind();
  const auto bytes = file_bytes();
  if (file == nullptr || !bytes.has_value() || !pending.empty() || commit_failed) return false;
  writer->require_in_place();
  return file->write_tail(writer->head(), from_bytes, *bytes);
}

bool region::RegionAccess::write_tail(const Region& region, std::uint64_t from_bytes) {
  const WriterCall call(region.impl_);
  return region.impl_->write_tail(from_bytes);
}

bool region::RegionAccess::is_asked_for(const Region& region) {
  const WriterCall call(region.impl_);
  const auto* const file = region.impl_->memory->file_behind();
  return file != nullptr && file->is_asked_for();
}

std::uint64_t Region::Impl::backed_bytes() const noexcept {
  const auto* const file = memory->file_behind();
  return file != nullptr ? file->backed_bytes() : memory->size_bytes();
}

void Region::Impl::extend_file(std::uint64_t bytes) {
  assert(bytes <= memory->size_bytes());
  if (auto* const file = memory->file_behind()) file->extend(bytes);
}

std::optional<std::uint64_t> Region::Impl::file_bytes() const noexcept {
  const std::uint64_t bytes = file_bytes_.load(std::memory_order_acquire);
  return bytes == kNoFile ? std::nullopt : std::optional(bytes);
}

void Region::Impl::set_file_bytes(std::optional<std::uint64_t> bytes) noexcept {
  assert(bytes.value_or(0) <= memory->size_bytes());
  if (auto* const file = memory->file_behind()) file->set_length(bytes);
  file_bytes_.store(bytes.value_or(kNoFile), std::memory_order_release);
}

PageNumber Region::Impl::end_page() const noexcept {
  const PageNumber pages = memory->size_bytes() / kPageBytes;
  const auto bytes = file_bytes();
  const bool file_ends = bytes.has_value() && memory->file_behind() != nullptr;
  return file_ends ? std::min(pages, format::pages_in(*bytes)) : pages;
}

// Chunks without content are not loaded. Everything else is loaded before the first change: an
// unreadable page is an error, and nothing has changed. The stores are marked here: no compiler
// marks them.
void Region::Impl::zero(std::byte* from, const std::byte* end) {
  assert(from >= memory->data() && from <= end);
  const auto load = [this](std::byte* at, std::size_t n) {
    const auto first = static_cast<std::size_t>(at - memory->data()) / kPageBytes;
    const auto last = static_cast<std::size_t>(at + n - 1 - memory->data()) / kPageBytes;
    make_present(first, last - first + 1);
  };
  for_each_content(*memory, from, end, load);
  for_each_content(*memory, from, end, [&](std::byte* at, std::size_t n) {
    load(at, n);  // it may have been evicted since
    base::make_zero(at, n);
    if (cards) vellum_mark(at, n);
  });
}

// A store past the end of the plain file extends the file to the end of the store's page, since its
// exact length is unknown. Otherwise the next export would lose it.
void Region::Impl::follow_stores_past_file_end(std::span<const PageNumber> dirty) {
  const auto bytes = file_bytes();
  if (!bytes.has_value()) return;
  for (auto page = dirty.rbegin(); page != dirty.rend(); ++page) {
    const std::uint64_t from = std::max(*page * kPageBytes, *bytes);
    const std::uint64_t end = (*page + 1) * kPageBytes;
    if (end <= *bytes) return;
    make_present(*page, 1);
    if (base::is_zero({memory->data() + from, end - from})) continue;
    extend_file(end);
    set_file_bytes(end);
    return;
  }
}

}  // namespace vellum
