// region/encode/encoder_capture.cpp: comparing each page with its base copy, which gets the recorded
// content.
#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <optional>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/memory/zeros.hpp"
#include "format/records/page_diff.hpp"
#include "memory/kernel/racing_page.hpp"
#include "region/encode/encoder.hpp"
#include "region/encode/encoder_slice.hpp"
#include "store/packs/encode/fresh_page.hpp"

namespace vellum::region {
namespace {

using format::PageNumber;

constexpr std::size_t kPrefetchAhead = 4;

constexpr std::size_t kMaxLinesToPrefetch = 4;

// The marked lines of pages. REQUIRES: of() is called for ascending pages.
class Lines {
 public:
  Lines(std::span<const cards::MarkedPage> marked, PageNumber first) noexcept
      : marked_(marked.subspan(static_cast<std::size_t>(
            std::lower_bound(marked.begin(), marked.end(), first,
                             [](const auto& m, PageNumber page) { return m.page < page; }) -
            marked.begin()))) {}
  std::uint64_t of(PageNumber page) noexcept {
    while (!marked_.empty() && marked_.front().page < page) marked_ = marked_.subspan(1);
    const bool found = !marked_.empty() && marked_.front().page == page;
    return found ? marked_.front().cards : format::DeltaBatch::kAllLines;
  }

 private:
  std::span<const cards::MarkedPage> marked_;
};

}  // namespace

// Prefetches the marked lines if they are few; otherwise the page's first line, and with it its
// address translation. The hardware's prefetcher, which stops at a page's end, then loads the rest
// better than 64 prefetches would.
void Encoder::prefetch(PageNumber page, std::uint64_t lines) const noexcept {
  if (!memory_.is_present(page)) return;
  const bool has_base_copy = backing_.has_base_copy(page);
  if (static_cast<std::size_t>(std::popcount(lines)) > kMaxLinesToPrefetch) lines = 1;
  for (; lines != 0; lines &= lines - 1) {
    const std::size_t at = static_cast<std::size_t>(std::countr_zero(lines)) * format::kLineBytes;
    __builtin_prefetch(pages_ + page * kPageBytes + at);
    if (has_base_copy) __builtin_prefetch(backing_.base_copy(page) + at, 1);
  }
}

void Encoder::capture_slice(std::span<const PageNumber> dirty, Worker& worker, Slice& slice) {
  std::optional<Held> held(std::in_place, memory_, dirty);
  worker.fresh_whole.clear();
  Lines lines(marked_, dirty.empty() ? 0 : dirty.front()), lines_ahead = lines;
  for (std::size_t i = 0; i < dirty.size(); ++i) {
    if (i + kPrefetchAhead < dirty.size()) {
      const PageNumber ahead = dirty[i + kPrefetchAhead];
      prefetch(ahead, lines_ahead.of(ahead));
    }
    if (memory_.is_present(dirty[i])) {
      capture_page(dirty[i], lines.of(dirty[i]), worker, slice);
    } else {
      capture_spilled(dirty[i], worker, slice);
    }
  }
  write_fresh_base_copies(worker, slice);
  held.reset();
  memory_.stay_within_limit();
}

void Encoder::capture_page(PageNumber page, std::uint64_t lines, Worker& worker, Slice& slice) {
  if (backing_.has_base_copy(page)) {
    capture_with_base_copy(page, lines, slice);
  } else if (memory_.is_bare(page)) {
    capture_bare(page, worker, slice);
  } else {
    capture_fresh(page, worker, slice);
  }
}

// The spill file's entry has the difference from the last commit: the delta. The page is not loaded.
void Encoder::capture_spilled(PageNumber page, Worker& worker, Slice& slice) {
  Captured& out = slice.captured;
  SpillFile::Entry entry;
  if (!memory_.take_spilled(page, worker.record, entry)) {
    if (memory_.is_present(page)) {
      capture_page(page, format::DeltaBatch::kAllLines, worker, slice);
    }
    return;
  }
  slice.taken.push_back(page);
  ++slice.changed;
  if (!entry.whole && entry.bytes.size() + 3 * entry.spans.size() <= max_delta_cost_bytes_) {
    out.writes.deltas.add(page, entry.spans, entry.bytes);
    return;
  }
  if (!entry.whole) memory_.read_committed(page, worker.page.data());
  entry.apply_to(worker.page.data());
  if (base::is_zero(worker.page)) {
    out.writes.zeros.push_back(page);
    return;
  }
  out.whole.push_back(page);
  out.spilled_whole.push_back(page);
  out.spilled_content.insert(out.spilled_content.end(), worker.page.begin(), worker.page.end());
}

void Encoder::capture_with_base_copy(PageNumber page, std::uint64_t lines, Slice& slice) {
  Captured& out = slice.captured;
  assert(backing_.has_base_copy(page));
  std::byte* const base_copy = backing_.base_copy(page);
  const std::byte* const now = pages_ + page * kPageBytes;
  if (!out.writes.deltas.add_difference(page, base_copy, now, lines)) return;
  ++slice.changed;
  memory_.note_newer(page);
  if (out.writes.deltas.last_cost_bytes() <= max_delta_cost_bytes_) {
    const auto& delta = out.writes.deltas.pages().back();
    const auto spans = out.writes.deltas.spans_of(delta);
    slice.old_bytes.add_content(page, spans, base_copy);
    format::apply_delta(spans, out.writes.deltas.bytes_of(delta), base_copy);
    return;
  }
  out.writes.deltas.pop_back();
  keep_old_page(page, slice);
  copy_racing_page(base_copy, now);  // the base copy has the recorded content from here on
  if (base::is_zero({base_copy, kPageBytes})) {
    out.writes.zeros.push_back(page);
  } else {
    out.whole.push_back(page);
  }
}

void Encoder::capture_fresh(PageNumber page, Worker& worker, Slice& slice) {
  Captured& out = slice.captured;
  const std::byte* const now = pages_ + page * kPageBytes;
  if (store::mostly_used(now)) {
    ++slice.changed;
    worker.fresh_whole.push_back(page);
    return;
  }
  if (!out.writes.deltas.add_difference_from_zero(page, now)) return;
  ++slice.changed;
  if (out.writes.deltas.last_cost_bytes() > max_fresh_delta_cost_bytes_) {
    out.writes.deltas.pop_back();
    worker.fresh_whole.push_back(page);
    return;
  }
  const auto& delta = out.writes.deltas.pages().back();
  std::fill(worker.page.begin(), worker.page.end(), std::byte{0});
  format::apply_delta(out.writes.deltas.spans_of(delta), out.writes.deltas.bytes_of(delta),
                      worker.page.data());
  write_base_copies(page, worker.page, slice);
}

// A bare page has no base copy to compare with, so all of it is recorded.
void Encoder::capture_bare(PageNumber page, Worker& worker, Slice& slice) {
  ++slice.changed;
  copy_racing_page(worker.page.data(), pages_ + page * kPageBytes);
  write_base_copies(page, worker.page, slice);
  auto& out = slice.captured;
  (base::is_zero(worker.page) ? out.writes.zeros : out.whole).push_back(page);
}

// Copies neighbours at once; the copies in the backing then get recorded.
void Encoder::write_fresh_base_copies(Worker& worker, Slice& slice) {
  const auto& fresh = worker.fresh_whole;
  for (std::size_t i = 0; i < fresh.size();) {
    std::size_t n = 1;
    while (i + n < fresh.size() && fresh[i + n] == fresh[i] + n) ++n;
    write_base_copies(fresh[i], {pages_ + fresh[i] * kPageBytes, n * kPageBytes}, slice);
    i += n;
  }
  auto& whole = slice.captured.whole;
  worker.merged.resize(whole.size() + fresh.size());
  std::merge(whole.begin(), whole.end(), fresh.begin(), fresh.end(), worker.merged.begin());
  whole.swap(worker.merged);
}

void Encoder::write_base_copies(PageNumber first, std::span<const std::byte> bytes, Slice& slice) {
  assert(bytes.size() % kPageBytes == 0 && !bytes.empty());
  const std::size_t count = bytes.size() / kPageBytes;
  for (std::size_t i = 0; i < count; ++i) {
    slice.fresh.push_back(first + i);
    memory_.note_newer(first + i);
  }
  const int error = backing_.write(first, bytes);
  if (error != 0) {
    fail(Errc::out_of_memory, "no memory for the committed copy of a page: {}",
         std::strerror(error));
  }
  backing_.note_base_copies(first, count);
}

}  // namespace vellum::region
