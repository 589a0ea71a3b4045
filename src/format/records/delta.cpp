#include "format/records/delta.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "format/records/page_diff.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

// Span gaps and lengths are below 2^14. Their varints therefore have one or two bytes.
// index_delta_batch() checks this once; take_short() relies on it.
constexpr std::size_t kMaxShort = 1u << 14;
static_assert(kPageBytes < kMaxShort);
static_assert(kPageBytes <= UINT16_MAX && kMaxDeltaBatchRawBytes <= UINT16_MAX + 1);

std::byte* put_varint(std::byte* at, std::uint64_t v) noexcept {
  for (; v >= 0x80; v >>= 7) *at++ = static_cast<std::byte>(v | 0x80);
  *at++ = static_cast<std::byte>(v);
  return at;
}

std::size_t take_short(const std::byte*& at) noexcept {
  const auto low = static_cast<std::size_t>(*at++);
  if (low < 0x80) return low;
  return (low & 0x7f) | static_cast<std::size_t>(*at++) << 7;
}

// The same, checked. Returns false at the end of the bytes, or for a varint of more than two bytes.
bool read_short(const std::byte*& at, const std::byte* end, std::size_t& out) noexcept {
  assert(at <= end);
  if (at == end) return false;
  if (static_cast<unsigned>(*at) >= 0x80 && (end - at < 2 || static_cast<unsigned>(at[1]) >= 0x80))
    return false;
  out = take_short(at);
  return true;
}

// Most spans are a few bytes long. For them a fixed-size copy is faster than a call.
// REQUIRES: PageDiff::kSlackBytes readable and writable past either end.
void copy_span(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  assert(bytes >= 1 && bytes <= kPageBytes);
  if (bytes <= PageDiff::kSlackBytes) {
    std::memcpy(to, from, PageDiff::kSlackBytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace

// A null `old_content` stands for an all-zero page.
bool DeltaBatch::add_difference(PageNumber page, const std::byte* old_content, const std::byte* now,
                                std::uint64_t lines) {
  assert(pages_.empty() || page > pages_.back().page);
  assert(page < kMaxPages && now != nullptr);
  PageDiff diff;
  if (lines == kAllLines) {
    diff_page(old_content, now, diff);
  } else {
    diff_lines(old_content, now, lines, diff);
  }
  if (diff.lines == 0) return false;

  const std::size_t first_span = spans_.size();
  const std::size_t first_byte = bytes_.size();
  std::size_t total = 0;
  for_each_span(diff.lines, diff.mask, kMergeGapBytes, [&](std::size_t offset, std::size_t length) {
    spans_.push_back({static_cast<std::uint16_t>(offset), static_cast<std::uint16_t>(length)});
    total += length;
  });
  // A merged gap is shorter than a line. Its bytes are therefore in changed lines, and in `copy`.
  assert(total >= 1 && total <= kPageBytes);
  bytes_.resize(first_byte + total + PageDiff::kSlackBytes);
  std::byte* to = bytes_.data() + first_byte;
  for (std::size_t i = first_span; i < spans_.size(); ++i) {
    copy_span(to, diff.copy + spans_[i].offset_bytes, spans_[i].length_bytes);
    to += spans_[i].length_bytes;
  }
  bytes_.resize(first_byte + total);
  pages_.push_back({page, first_span, first_byte,
                    static_cast<std::uint32_t>(spans_.size() - first_span),
                    static_cast<std::uint32_t>(total)});
  return true;
}

bool DeltaBatch::add_difference_from_zero(PageNumber page, const std::byte* now) {
  return add_difference(page, nullptr, now);
}

void DeltaBatch::add(PageNumber page, std::span<const DeltaSpan> spans,
                     std::span<const std::byte> bytes) {
  add_borrowed(page, spans, bytes);
  pages_.back().borrowed = nullptr;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void DeltaBatch::add_borrowed(PageNumber page, std::span<const DeltaSpan> spans,
                              std::span<const std::byte> bytes) {
  assert(pages_.empty() || page > pages_.back().page);
  assert(page < kMaxPages && !spans.empty() && spans.size() <= kPageBytes);
  assert(bytes.size() <= kPageBytes);
  pages_.push_back({page, spans_.size(), bytes_.size(), static_cast<std::uint32_t>(spans.size()),
                    static_cast<std::uint32_t>(bytes.size()), bytes.data()});
  spans_.insert(spans_.end(), spans.begin(), spans.end());
}

void DeltaBatch::add_content(PageNumber page, std::span<const DeltaSpan> spans,
                             const std::byte* content) {
  assert(content != nullptr);
  add(page, spans, {});
  for (const DeltaSpan& s : spans) {
    assert(std::size_t{s.offset_bytes} + s.length_bytes <= kPageBytes);
    const std::byte* const from = content + s.offset_bytes;
    bytes_.insert(bytes_.end(), from, from + s.length_bytes);
  }
  pages_.back().bytes = static_cast<std::uint32_t>(bytes_.size() - pages_.back().first_byte);
}

void DeltaBatch::reserve(std::size_t pages) {
  constexpr std::size_t kSpans = 4, kBytes = 32;
  pages_.reserve(pages);
  spans_.reserve(pages * kSpans);
  bytes_.reserve(pages * kBytes);
}

void DeltaBatch::pop_back() {
  assert(!pages_.empty());
  spans_.resize(pages_.back().first_span);
  bytes_.resize(pages_.back().first_byte);
  pages_.pop_back();
}

std::size_t DeltaBatch::last_cost_bytes() const {
  assert(!pages_.empty());
  return pages_.back().bytes + 3 * std::size_t{pages_.back().spans};
}

void DeltaBatch::clear() {
  pages_.clear();
  spans_.clear();
  bytes_.clear();
}

void apply_delta(std::span<const DeltaSpan> spans, std::span<const std::byte> bytes,
                 std::byte* page) noexcept {
  assert(page != nullptr);
  const std::byte* from = bytes.data();
  for (const DeltaSpan& s : spans) {
    assert(std::size_t{s.offset_bytes} + s.length_bytes <= kPageBytes);
    assert(from + s.length_bytes <= bytes.data() + bytes.size());
    std::memcpy(page + s.offset_bytes, from, s.length_bytes);
    from += s.length_bytes;
  }
  assert(from == bytes.data() + bytes.size());
}

DeltaComposer::DeltaComposer() : content_(kPageBytes), mask_(kLinesPerPage) {}

void DeltaComposer::reset() { std::fill(mask_.begin(), mask_.end(), 0); }

void DeltaComposer::apply(std::span<const DeltaSpan> spans, std::span<const std::byte> bytes) {
  apply_delta(spans, bytes, content_.data());
  touch(spans);
}

void DeltaComposer::touch(std::span<const DeltaSpan> spans) {
  for (const DeltaSpan& s : spans) {
    const std::size_t end = std::size_t{s.offset_bytes} + s.length_bytes;
    assert(end <= kPageBytes);
    for (std::size_t at = s.offset_bytes; at < end;) {
      const std::size_t bit = at % kLineBytes;
      const std::size_t n = std::min(end - at, kLineBytes - bit);
      mask_[at / kLineBytes] |= (~std::uint64_t{0} >> (kLineBytes - n)) << bit;
      at += n;
    }
  }
}

// Untouched bytes are unknown here. Spans are therefore not merged across them.
void DeltaComposer::append_to(DeltaBatch& out, PageNumber page) const {
  append_spans(out, page, content_.data(), 0);
}

void DeltaComposer::append_to(DeltaBatch& out, PageNumber page, const std::byte* now) const {
  append_spans(out, page, now, kMergeGapBytes);
}

void DeltaComposer::append_spans(DeltaBatch& out, PageNumber page, const std::byte* content,
                                 std::size_t merge_gap_bytes) const {
  std::uint64_t lines = 0;
  for (std::size_t i = 0; i < kLinesPerPage; ++i) lines |= std::uint64_t{mask_[i] != 0} << i;
  std::vector<DeltaSpan> spans;
  std::vector<std::byte> bytes;
  for_each_span(lines, mask_.data(), merge_gap_bytes, [&](std::size_t offset, std::size_t length) {
    spans.push_back({static_cast<std::uint16_t>(offset), static_cast<std::uint16_t>(length)});
    bytes.insert(bytes.end(), content + offset, content + offset + length);
  });
  assert(!spans.empty());
  assert(bytes.size() <= kPageBytes);
  out.add(page, spans, bytes);
}

namespace {

std::byte* put_page_columns(std::byte* at, std::span<const DeltaBatch::Page> pages) noexcept {
  at = put_varint(at, pages.size());
  PageNumber next = 0;
  for (const auto& p : pages) {
    assert(p.page >= next && p.page < kMaxPages && p.spans >= 1);
    at = put_varint(at, p.page - next);
    next = p.page + 1;
  }
  for (const auto& p : pages) at = put_varint(at, p.spans - 1);
  return at;
}

std::byte* put_span_gaps(std::byte* at, std::span<const DeltaSpan> spans) noexcept {
  std::size_t end = 0;
  for (const DeltaSpan& s : spans) {
    assert(s.offset_bytes >= end && s.length_bytes >= 1);
    at = put_varint(at, s.offset_bytes - end);
    end = std::size_t{s.offset_bytes} + s.length_bytes;
  }
  assert(end <= kPageBytes);
  return at;
}

}  // namespace

namespace {

// Returns the end of the encoding.
std::byte* put_batch(std::byte* at, const DeltaBatch& batch,
                     std::span<const DeltaBatch::Page> pages) noexcept {
  at = put_page_columns(at, pages);
  for (const auto& p : pages) at = put_span_gaps(at, batch.spans_of(p));
  for (const auto& p : pages) {
    for (const DeltaSpan& s : batch.spans_of(p)) at = put_varint(at, s.length_bytes - 1u);
  }
  for (const auto& p : pages) {
    const auto b = batch.bytes_of(p);
    if (!b.empty()) std::memcpy(at, b.data(), b.size());
    at += b.size();
  }
  return at;
}

constexpr std::size_t varint_bytes(std::uint64_t v) noexcept {
  return v < 0x80 ? 1 : (static_cast<std::size_t>(std::bit_width(v)) + 6) / 7;
}

// Of the two columns, gaps and lengths.
std::size_t span_columns_bytes(std::span<const DeltaSpan> spans) noexcept {
  std::size_t end = 0, bytes = 0;
  for (const DeltaSpan& s : spans) {
    bytes += varint_bytes(s.offset_bytes - end) + varint_bytes(s.length_bytes - 1u);
    end = std::size_t{s.offset_bytes} + s.length_bytes;
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> encode_delta_batch(const DeltaBatch& batch, std::size_t first,
                                          std::size_t count) {
  assert(count >= 1 && count <= kMaxDeltasPerBatch && first + count <= batch.pages().size());
  const auto pages = std::span(batch.pages()).subspan(first, count);
  std::size_t spans = 0, bytes = 0;
  for (const auto& p : pages) {
    spans += p.spans;
    bytes += p.bytes;
  }
  std::vector<std::byte> out(32 + pages.size() * 12 + spans * 4 + bytes);
  const std::byte* const end = put_batch(out.data(), batch, pages);
  out.resize(static_cast<std::size_t>(end - out.data()));
  return out;
}

DeltaRun deltas_that_fit(const DeltaBatch& batch, std::size_t first) noexcept {
  assert(first < batch.pages().size());
  const auto left = std::span(batch.pages()).subspan(first);
  DeltaRun run{first, 0, 0};
  std::size_t bytes = 0;
  PageNumber next = 0;
  for (const auto& p : left.first(std::min<std::size_t>(left.size(), kMaxDeltasPerBatch))) {
    bytes += varint_bytes(p.page - next) + varint_bytes(p.spans - 1) +
             span_columns_bytes(batch.spans_of(p)) + p.bytes;
    const std::size_t encoded = varint_bytes(run.count + 1) + bytes;
    if (run.count > 0 && encoded > kMaxDeltaBatchRawBytes) break;
    next = p.page + 1;
    ++run.count;
    run.encoded_bytes = encoded;
  }
  return run;
}

void append_delta_batch(const DeltaBatch& batch, const DeltaRun& run, std::vector<std::byte>& out) {
  assert(run.count >= 1 && run.first + run.count <= batch.pages().size());
  const std::size_t start = out.size();
  out.resize(start + run.encoded_bytes);
  const auto pages = std::span(batch.pages()).subspan(run.first, run.count);
  [[maybe_unused]] const std::byte* const end = put_batch(out.data() + start, batch, pages);
  assert(end == out.data() + out.size());
}

namespace {

// Reads page numbers and span counts. Returns the total number of spans, or 0 for corrupted bytes.
std::size_t read_page_columns(ByteReader& in, std::span<DeltaIndexLine> lines) noexcept {
  PageNumber next = 0;
  for (auto& l : lines) {
    const std::uint64_t gap = in.varint();
    if (!in.ok() || next >= kMaxPages || gap >= kMaxPages - next) return 0;
    l.page = next + gap;
    next = l.page + 1;
  }
  std::size_t total = 0;
  for (auto& l : lines) {
    const std::uint64_t more = in.varint();
    if (!in.ok() || more >= kPageBytes) return 0;
    l.spans = static_cast<std::uint16_t>(more + 1);
    total += l.spans;
  }
  return total;
}

// Checks one page's spans, gaps and lengths in step. Returns the number of bytes that they cover,
// or 0 for corrupted bytes.
std::size_t check_spans(std::uint32_t spans, const std::byte*& gaps, const std::byte*& lengths,
                        const std::byte* end) noexcept {
  assert(spans >= 1);
  std::size_t at = 0, covered = 0;
  for (std::uint32_t i = 0; i < spans; ++i) {
    std::size_t gap = 0, more = 0;
    if (!read_short(gaps, end, gap) || !read_short(lengths, end, more)) return 0;
    at += gap + more + 1;
    covered += more + 1;
    if (at > kPageBytes) return 0;
  }
  assert(covered >= spans && covered <= at);
  return covered;
}

// The end of the column of `count` shorts at `at`, or null.
const std::byte* skip_shorts(const std::byte* at, const std::byte* end,
                             std::size_t count) noexcept {
  for (std::size_t ignored = 0; count > 0; --count) {
    if (!read_short(at, end, ignored)) return nullptr;
  }
  return at;
}

// Gaps, lengths, bytes. Fills the offsets of `lines`. Returns whether the columns fill the input
// exactly.
bool index_spans(std::span<const std::byte> raw, std::size_t start, std::size_t spans,
                 std::span<DeltaIndexLine> lines) noexcept {
  assert(start <= raw.size() && spans >= lines.size());
  const std::byte* const begin = raw.data();
  const std::byte* const end = begin + raw.size();
  const std::byte* gaps = begin + start;
  const std::byte* lengths = skip_shorts(gaps, end, spans);
  const std::byte* const bytes = lengths == nullptr ? nullptr : skip_shorts(lengths, end, spans);
  if (bytes == nullptr) return false;
  std::size_t byte_offset = static_cast<std::size_t>(bytes - begin);
  for (auto& l : lines) {
    // Each is the offset of an existing byte, or the check below fails. 16 bits therefore hold it.
    l.gap_offset = static_cast<std::uint16_t>(gaps - begin);
    l.length_offset = static_cast<std::uint16_t>(lengths - begin);
    l.byte_offset = static_cast<std::uint16_t>(byte_offset);
    const std::size_t covered = check_spans(l.spans, gaps, lengths, end);
    if (covered == 0 || covered > raw.size() - byte_offset) return false;
    byte_offset += covered;
  }
  return byte_offset == raw.size();
}

}  // namespace

int index_delta_batch(std::span<const std::byte> raw, std::span<DeltaIndexLine> lines) noexcept {
  if (raw.size() > kMaxDeltaBatchRawBytes) return -1;
  ByteReader in(raw);
  const std::uint64_t n = in.varint();
  if (!in.ok() || n < 1 || n > kMaxDeltasPerBatch || n > lines.size() || n > in.left()) return -1;
  lines = lines.first(static_cast<std::size_t>(n));
  const std::size_t spans = read_page_columns(in, lines);
  if (spans == 0 || spans > in.left()) return -1;
  if (!index_spans(raw, raw.size() - in.left(), spans, lines)) return -1;
  return static_cast<int>(n);
}

namespace {

// A cheap part of "`line` comes from index_delta_batch over the same bytes".
[[maybe_unused]] bool is_line_of(const DeltaIndexLine& line,
                                 std::span<const std::byte> raw) noexcept {
  return line.spans >= 1 && line.gap_offset < line.length_offset &&
         line.length_offset < line.byte_offset && line.byte_offset < raw.size();
}

}  // namespace

void apply_indexed_delta(std::span<const std::byte> raw, const DeltaIndexLine& line,
                         std::byte* page) noexcept {
  assert(page != nullptr && is_line_of(line, raw));
  const std::byte* gaps = raw.data() + line.gap_offset;
  const std::byte* lengths = raw.data() + line.length_offset;
  const std::byte* bytes = raw.data() + line.byte_offset;
  for (std::uint32_t i = 0; i < line.spans; ++i) {
    page += take_short(gaps);
    const std::size_t length = take_short(lengths) + 1;
    std::memcpy(page, bytes, length);
    page += length;
    bytes += length;
  }
}

void expand_indexed_delta(std::span<const std::byte> raw, const DeltaIndexLine& line,
                          std::vector<DeltaSpan>& spans, std::vector<std::byte>& bytes) {
  assert(is_line_of(line, raw));
  const std::byte* gaps = raw.data() + line.gap_offset;
  const std::byte* lengths = raw.data() + line.length_offset;
  std::size_t at = 0, covered = 0;
  for (std::uint32_t i = 0; i < line.spans; ++i) {
    at += take_short(gaps);
    const std::size_t length = take_short(lengths) + 1;
    spans.push_back({static_cast<std::uint16_t>(at), static_cast<std::uint16_t>(length)});
    at += length;
    covered += length;
  }
  assert(at <= kPageBytes && covered <= raw.size() - line.byte_offset);
  const auto covering = raw.subspan(line.byte_offset, covered);
  bytes.insert(bytes.end(), covering.begin(), covering.end());
}

bool decode_delta_batch(std::span<const std::byte> raw, DeltaBatch& out) {
  out.clear();
  std::vector<DeltaIndexLine> lines(std::min<std::size_t>(kMaxDeltasPerBatch, raw.size()));
  const int n = index_delta_batch(raw, lines);
  if (n < 0) return false;
  for (const auto& l : std::span(lines).first(static_cast<std::size_t>(n))) {
    const std::size_t first_span = out.spans_.size(), first_byte = out.bytes_.size();
    expand_indexed_delta(raw, l, out.spans_, out.bytes_);
    out.pages_.push_back({l.page, first_span, first_byte, l.spans,
                          static_cast<std::uint32_t>(out.bytes_.size() - first_byte)});
  }
  return true;
}

}  // namespace vellum::format
