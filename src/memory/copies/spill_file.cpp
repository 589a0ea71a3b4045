#include "memory/copies/spill_file.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "base/bytes/checksum.hpp"
#include "base/round_up.hpp"
#include "memory/kernel/racing_page.hpp"

namespace vellum::region {

using format::DeltaSpan;
using format::kPageBytes;
using format::PageDiff;
using format::PageNumber;

namespace {

struct Header {
  std::uint64_t checksum;  // of all that follows; the seed is the page's number
  std::uint32_t spans;     // kWhole: the page itself follows
  std::uint32_t bytes;
};
static_assert(sizeof(Header) == 16);
constexpr std::uint32_t kWhole = UINT32_MAX;
constexpr std::size_t kCovered = offsetof(Header, spans);

// A page's word: the position and length of its record, in units, and two flags (spill_file.hpp).
constexpr std::uint64_t kUnitBytes = 16;
constexpr unsigned kPositionBits = 50;
constexpr std::uint64_t kPositionMask = (1ULL << kPositionBits) - 1;
// The file of the largest region has live records, as many dead ones, and free segments.
static_assert(4 * format::kMaxRegionBytes / kUnitBytes < kPositionMask);
static_assert(SpillFile::Batch::kRecordBytes / kUnitBytes <= 0x3ff);

// A larger difference is stored as the whole page.
constexpr std::size_t kMaxDifferenceBytes = kPageBytes * 3 / 4;

}  // namespace

void SpillFile::Batch::add(PageNumber page, const PageDiff& diff, const std::byte* now) noexcept {
  assert(count_ < kMaxPages);
  std::byte* const at = room_ + used_bytes_;
  std::size_t spans = 0, bytes = 0;
  format::for_each_span(diff.lines, diff.mask, format::kMergeGapBytes,
                        [&](std::size_t, std::size_t length) {
                          ++spans;
                          bytes += length;
                        });
  if (spans * sizeof(DeltaSpan) + bytes > kMaxDifferenceBytes) return add_whole(page, now);
  std::byte* span_at = at + sizeof(Header);
  std::byte* byte_at = span_at + spans * sizeof(DeltaSpan);
  format::for_each_span(
      diff.lines, diff.mask, format::kMergeGapBytes, [&](std::size_t offset, std::size_t n) {
        const DeltaSpan span{static_cast<std::uint16_t>(offset), static_cast<std::uint16_t>(n)};
        std::memcpy(span_at, &span, sizeof span);
        std::memcpy(byte_at, diff.copy + offset, n);
        span_at += sizeof span;
        byte_at += n;
      });
  finish(page, static_cast<std::uint32_t>(spans), bytes);
}

void SpillFile::Batch::add_whole(PageNumber page, const std::byte* now) noexcept {
  assert(count_ < kMaxPages);
  copy_racing_page(room_ + used_bytes_ + sizeof(Header), now);
  finish(page, kWhole, kPageBytes);
}

// Completes a record whose content is in place.
void SpillFile::Batch::finish(PageNumber page, std::uint32_t spans, std::size_t bytes) noexcept {
  std::byte* const at = room_ + used_bytes_;
  Header header{0, spans, static_cast<std::uint32_t>(bytes)};
  const std::size_t spans_bytes = spans == kWhole ? 0 : spans * sizeof(DeltaSpan);
  const std::size_t length = sizeof header + spans_bytes + bytes;
  std::memcpy(at, &header, sizeof header);
  header.checksum = base::checksum64({at + kCovered, length - kCovered}, page);
  std::memcpy(at, &header, sizeof header);
  const std::size_t padded = base::round_up(length, kUnitBytes);
  std::memset(at + length, 0, padded - length);
  records_[count_++] = {page, static_cast<std::uint32_t>(used_bytes_),
                        static_cast<std::uint32_t>(padded)};
  used_bytes_ += padded;
}

void SpillFile::Entry::apply_to(std::byte* page) const noexcept {
  if (whole) {
    std::memcpy(page, bytes.data(), kPageBytes);
  } else {
    format::apply_delta(spans, bytes, page);
  }
}

SpillFile::SpillFile(const std::string& directory, std::uint64_t capacity_pages)
    : capacity_pages_(capacity_pages),
      // For live records, as many bytes of dead ones (pages_to_move), and some free segments.
      segments_(capacity_pages * kPageBytes / kSegmentBytes * 3 + 64),
      file_(directory),
      table_(capacity_pages * sizeof(std::uint64_t)),
      counts_((capacity_pages / kPagesPerCount + 1) * sizeof(std::uint32_t)),
      live_(segments_ * sizeof(std::uint32_t)) {}

// The segment is in use from now on, before it is written, until all its records are dropped.
bool SpillFile::reserve(std::size_t bytes, std::uint64_t& at_bytes) noexcept {
  assert(bytes != 0 && bytes <= kSegmentBytes);
  append_.lock();
  bool room = open_used_bytes_ + bytes <= kSegmentBytes;
  for (std::uint64_t i = 1; !room && i < segments_; ++i) {
    const std::uint64_t segment = (open_segment_ + i) % segments_;
    if (live(segment).load() != 0) continue;
    open_segment_ = segment;
    open_used_bytes_ = 0;
    segments_used_ = std::max(segments_used_, segment + 1);
    room = true;
  }
  if (room) {
    at_bytes = open_segment_ * kSegmentBytes + open_used_bytes_;
    open_used_bytes_ += bytes;
    live(open_segment_).fetch_add(static_cast<std::uint32_t>(bytes));
  }
  append_.unlock();
  return room;
}

int SpillFile::put(const Batch& batch) noexcept {
  std::uint64_t at = 0;
  if (!reserve(batch.used_bytes_, at)) return ENOSPC;
  const int error = file_.write({batch.room_, batch.used_bytes_}, at);
  if (error != 0) {
    live(at / kSegmentBytes).fetch_sub(static_cast<std::uint32_t>(batch.used_bytes_));
    return error;
  }
  for (std::size_t i = 0; i < batch.count_; ++i) {
    const Batch::BatchRecord& r = batch.records_[i];
    assert(!holds(r.page));
    word(r.page).store(kPresent | std::uint64_t{r.length_bytes} / kUnitBytes << kPositionBits |
                       (at + r.at_bytes) / kUnitBytes);
    count_of(r.page).fetch_add(1);
  }
  pages_.fetch_add(batch.count_);
  put_bytes_.fetch_add(batch.used_bytes_, std::memory_order_relaxed);
  return 0;
}

namespace {
constexpr std::uint64_t at_of(std::uint64_t word) { return (word & kPositionMask) * kUnitBytes; }
constexpr std::uint64_t length_of(std::uint64_t word) {
  return (word >> kPositionBits & 0x3ff) * kUnitBytes;
}
}  // namespace

std::uint64_t SpillFile::held_in(PageNumber first, std::size_t count) const noexcept {
  assert(count <= Batch::kMaxPages);
  if (pages() == 0 || count_of(first).load() + count_of(first + count - 1).load() == 0) return 0;
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < count; ++i) held |= std::uint64_t{holds(first + i)} << i;
  return held;
}

// By the length: a difference is shorter.
std::uint64_t SpillFile::whole_in(PageNumber first, std::size_t count) const noexcept {
  assert(count <= Batch::kMaxPages);
  static_assert(sizeof(Header) + kMaxDifferenceBytes < Batch::kRecordBytes);
  std::uint64_t whole = 0;
  for (std::size_t i = 0; i < count; ++i)
    whole |= std::uint64_t{length_of(word(first + i).load()) == Batch::kRecordBytes} << i;
  return whole;
}

// From the first record to the end of the last; 0 bytes: none of the pages has one.
SpillFile::FileExtent SpillFile::extent_of(PageNumber first, std::uint64_t pages) const noexcept {
  std::uint64_t begin = UINT64_MAX, end = 0;
  for (; pages != 0; pages &= pages - 1) {
    const std::uint64_t entry = word(first + static_cast<unsigned>(__builtin_ctzll(pages))).load();
    if (entry == 0) continue;
    begin = std::min(begin, at_of(entry));
    end = std::max(end, at_of(entry) + length_of(entry));
  }
  return begin < end ? FileExtent{begin, end - begin} : FileExtent{};
}

SpillFile::LoadedRecords SpillFile::load(PageNumber first, std::uint64_t pages,
                                         std::byte* room) const noexcept {
  LoadedRecords loaded;
  const FileExtent extent = extent_of(first, pages);
  const auto count = static_cast<std::size_t>(__builtin_popcountll(pages));
  if (extent.bytes == 0 || extent.bytes > Batch::bytes(count)) return loaded;
  const std::span<std::byte> bytes(room, extent.bytes);
  if (file_.read(bytes, extent.at_bytes) != 0) return loaded;
  loaded.at_bytes_ = extent.at_bytes;
  loaded.bytes_ = bytes;
  return loaded;
}

void SpillFile::will_load(PageNumber first, std::size_t count) const noexcept {
  const std::uint64_t held = held_in(first, count);
  const FileExtent extent = extent_of(first, held);
  if (extent.bytes == 0 || extent.bytes > Batch::bytes(count)) return;
  file_.will_need(extent.at_bytes, extent.bytes);
}

int SpillFile::read(PageNumber page, std::byte* buffer, Entry& out) const noexcept {
  return read({}, page, buffer, out);
}

int SpillFile::read(const LoadedRecords& loaded, PageNumber page, std::byte* buffer,
                    Entry& out) const noexcept {
  const std::uint64_t entry = word(page).load();
  assert(entry != 0 && reinterpret_cast<std::uintptr_t>(buffer) % 8 == 0);
  const std::size_t length = length_of(entry);
  if (length > Batch::kRecordBytes) return EBADMSG;
  const std::uint64_t at = at_of(entry), loaded_end = loaded.at_bytes_ + loaded.bytes_.size();
  if (at >= loaded.at_bytes_ && at + length <= loaded_end) {
    buffer = loaded.bytes_.data() + (at - loaded.at_bytes_);
  } else if (const int error = file_.read({buffer, length}, at); error != 0) {
    return error;
  }
  Header header;
  std::memcpy(&header, buffer, sizeof header);
  const bool whole = header.spans == kWhole;
  const std::size_t spans_bytes = whole ? 0 : header.spans * sizeof(DeltaSpan);
  const std::size_t used = sizeof header + spans_bytes + header.bytes;
  if (used > length || (whole && header.bytes != kPageBytes) ||
      header.checksum != base::checksum64({buffer + kCovered, used - kCovered}, page)) {
    return EBADMSG;
  }
  const auto* spans = reinterpret_cast<const DeltaSpan*>(buffer + sizeof header);
  out = {whole,
         {spans, whole ? 0U : header.spans},
         {buffer + sizeof header + spans_bytes, header.bytes}};
  return 0;
}

void SpillFile::drop(PageNumber page) noexcept {
  const std::uint64_t entry = word(page).exchange(0);
  if (entry == 0) return;
  count_of(page).fetch_sub(1);
  pages_.fetch_sub(1);
  live(at_of(entry) / kSegmentBytes).fetch_sub(static_cast<std::uint32_t>(length_of(entry)));
}

void SpillFile::move(PageNumber page, std::byte* buffer) noexcept {
  const std::uint64_t entry = word(page).load();
  const std::size_t length = length_of(entry);
  std::uint64_t at = 0;
  if (entry == 0 || length > Batch::kRecordBytes || file_.read({buffer, length}, at_of(entry)) != 0)
    return;
  if (!reserve(length, at)) return;
  std::uint64_t segment = at / kSegmentBytes;
  if (file_.write({buffer, length}, at) == 0) {
    word(page).store((entry & ~kPositionMask) | at / kUnitBytes);
    segment = at_of(entry) / kSegmentBytes;
  }
  live(segment).fetch_sub(static_cast<std::uint32_t>(length));
}

void SpillFile::set_taken(PageNumber page, bool taken) noexcept {
  assert(holds(page));
  if (taken) {
    word(page).fetch_or(kTaken);
  } else {
    word(page).fetch_and(~kTaken);
  }
}

void SpillFile::append_pages(std::vector<PageNumber>& out) const {
  if (pages() == 0) return;
  for (PageNumber first = 0; first < capacity_pages_; first += kPagesPerCount) {
    if (count_of(first).load() == 0) continue;
    const PageNumber end = std::min(first + kPagesPerCount, capacity_pages_);
    for (PageNumber page = first; page < end; ++page) {
      if (holds(page)) out.push_back(page);
    }
  }
}

void SpillFile::tidy() noexcept {
  append_.lock();
  const std::uint64_t used = segments_used_;
  append_.unlock();
  for (std::uint64_t segment = 0; segment < used; ++segment) {
    if (live(segment).load() != 0) continue;
    append_.lock();
    // The open segment, too, is used from its start again when it has no live records.
    if (live(segment).load() == 0) {
      if (segment == open_segment_) open_used_bytes_ = 0;
      file_.punch(segment * kSegmentBytes, kSegmentBytes);
    }
    append_.unlock();
  }
  append_.lock();
  while (segments_used_ > 1 && live(segments_used_ - 1).load() == 0) --segments_used_;
  if (open_segment_ >= segments_used_) {
    open_segment_ = segments_used_ - 1;
    open_used_bytes_ = live(open_segment_).load() == 0 ? 0 : kSegmentBytes;  // full: the next is
  }
  append_.unlock();
}

std::vector<PageNumber> SpillFile::pages_to_move() {
  constexpr std::uint64_t kSlackBytes = 64u << 20;
  std::uint64_t live_bytes = 0, used_bytes = 0, emptiest = 0;
  std::uint32_t least = UINT32_MAX;
  append_.lock();
  const std::uint64_t used = segments_used_, open = open_segment_;
  append_.unlock();
  for (std::uint64_t segment = 0; segment < used; ++segment) {
    const std::uint32_t bytes = live(segment).load();
    if (bytes == 0) continue;
    live_bytes += bytes;
    used_bytes += kSegmentBytes;
    if (segment == open || bytes >= least) continue;
    least = bytes;
    emptiest = segment;
  }
  std::vector<PageNumber> out;
  if (used_bytes <= 2 * live_bytes + kSlackBytes || least == UINT32_MAX) return out;
  for (PageNumber first = 0; first < capacity_pages_; first += kPagesPerCount) {
    if (count_of(first).load() == 0) continue;
    const PageNumber end = std::min(first + kPagesPerCount, capacity_pages_);
    for (PageNumber page = first; page < end; ++page) {
      const std::uint64_t entry = word(page).load();
      if (entry != 0 && at_of(entry) / kSegmentBytes == emptiest) out.push_back(page);
    }
  }
  return out;
}

}  // namespace vellum::region
