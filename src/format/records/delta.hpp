// format/records/delta.hpp: changes inside pages.
//
// A page delta is a list of byte spans (offset, length, new bytes). It holds the new bytes, not an
// XOR. Applying a delta twice is therefore harmless. A batch holds the deltas of many pages, sorted
// by page, in columns (page gaps, span counts, gaps between spans, span lengths, bytes). Columns
// compress better than rows.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/types.hpp"

namespace vellum::format {

struct DeltaSpan {
  std::uint16_t offset_bytes;  // in the page
  std::uint16_t length_bytes;  // >= 1
};

// A batch under construction, or decoded for normal code.
class DeltaBatch {
 public:
  struct Page {
    PageNumber page;
    std::size_t first_span, first_byte;  // a checkpoint's batch may exceed 4 GiB
    std::uint32_t spans, bytes;
    const std::byte* borrowed = nullptr;  // the bytes, if the batch does not own them
  };
  const std::vector<Page>& pages() const { return pages_; }
  std::span<const DeltaSpan> spans_of(const Page& p) const {
    assert(p.first_span + p.spans <= spans_.size());
    return std::span(spans_).subspan(p.first_span, p.spans);
  }
  std::span<const std::byte> bytes_of(const Page& p) const {
    if (p.borrowed != nullptr) return {p.borrowed, p.bytes};
    assert(p.first_byte + p.bytes <= bytes_.size());  // not after drop_bytes()
    return std::span(bytes_).subspan(p.first_byte, p.bytes);
  }
  bool empty() const { return pages_.empty(); }
  // An upper bound of the size that encode_delta_batch() returns. REQUIRES: no bytes are borrowed.
  std::size_t encoded_bound_bytes() const {
    assert(pages_.empty() || pages_.back().borrowed == nullptr);
    return 32 + pages_.size() * 12 + spans_.size() * 6 + bytes_.size();
  }

  static constexpr std::uint64_t kAllLines = ~std::uint64_t{0};
  // Appends the difference between two contents of one page. A null `old_content` stands for zeros.
  // Returns false and adds nothing when they are equal. Reads each changed byte of `now` once. A
  // page that another thread writes meanwhile therefore gives a consistent delta: the batch's bytes
  // are the recorded content. Merges spans with gaps of at most kMergeGapBytes, since a span costs
  // about three bytes. Compares only the lines of 64 bytes whose bits are set in `lines`.
  // REQUIRES: `page` is larger than the last one added.
  bool add_difference(PageNumber page, const std::byte* old_content, const std::byte* now,
                      std::uint64_t lines = kAllLines);
  // The same with old content that is all zero.
  bool add_difference_from_zero(PageNumber page, const std::byte* now);
  // Appends a delta of another batch. REQUIRES: as for add_difference(), and at least one span.
  void add(PageNumber page, std::span<const DeltaSpan> spans, std::span<const std::byte> bytes);
  // The same without a copy of the bytes. REQUIRES: the bytes stay valid and in place until
  // drop_bytes() or the batch's destruction.
  void add_borrowed(PageNumber page, std::span<const DeltaSpan> spans,
                    std::span<const std::byte> bytes);
  // Appends a delta with the page's content at these spans. REQUIRES: as for add().
  void add_content(PageNumber page, std::span<const DeltaSpan> spans, const std::byte* content);
  // Reserves memory for `pages` pages with a few changed words each.
  void reserve(std::size_t pages);
  // Removes the last page (the encoder chose a whole block instead). REQUIRES: there is a page.
  void pop_back();
  // Size of the last page's delta: span bytes + 3 bytes a span. REQUIRES: there is a page.
  std::size_t last_cost_bytes() const;
  void clear();
  // Frees the bytes and keeps the spans. Callers must not use bytes_of() afterwards.
  void drop_bytes() noexcept { bytes_ = {}; }
  std::size_t memory_bytes() const noexcept {
    return pages_.capacity() * sizeof(Page) + spans_.capacity() * sizeof(DeltaSpan) +
           bytes_.capacity();
  }

 private:
  friend bool decode_delta_batch(std::span<const std::byte> raw, DeltaBatch& out);
  std::vector<Page> pages_;
  std::vector<DeltaSpan> spans_;
  std::vector<std::byte> bytes_;
};

inline constexpr std::size_t kMergeGapBytes = 3;

// REQUIRES: the spans lie inside a page, and `bytes` are exactly their bytes.
void apply_delta(std::span<const DeltaSpan> spans, std::span<const std::byte> bytes,
                 std::byte* page) noexcept;

// Composes several deltas of one page, oldest first, into one.
class DeltaComposer {
 public:
  DeltaComposer();
  void reset();
  void apply(std::span<const DeltaSpan> spans, std::span<const std::byte> bytes);
  // Appends the composed delta to `out`. REQUIRES: at least one apply() since reset().
  void append_to(DeltaBatch& out, PageNumber page) const;

  // Records the spans only; the caller has the bytes. Between two resets, call either apply() or
  // touch().
  void touch(std::span<const DeltaSpan> spans);
  // REQUIRES: at least one touch() since reset(); `now` is the page's whole content.
  void append_to(DeltaBatch& out, PageNumber page, const std::byte* now) const;

 private:
  void append_spans(DeltaBatch& out, PageNumber page, const std::byte* content,
                    std::size_t merge_gap_bytes) const;

  std::vector<std::byte> content_;
  std::vector<std::uint64_t> mask_;  // one bit per byte: touched
};

// Raw payload of a deltas record, or of a deltas part of a journal frame. REQUIRES: sorted by page,
// at most kMaxDeltasPerBatch pages in [first, first + count).
std::vector<std::byte> encode_delta_batch(const DeltaBatch& batch, std::size_t first,
                                          std::size_t count);

// Some of a batch's deltas, and the exact size of their encoding.
struct DeltaRun {
  std::size_t first = 0, count = 0, encoded_bytes = 0;
};
// As many deltas, from `first` on, as fit into one record or commit part. At least one.
DeltaRun deltas_that_fit(const DeltaBatch& batch, std::size_t first) noexcept;
// Appends what encode_delta_batch() returns. REQUIRES: deltas_that_fit() returned `run`.
void append_delta_batch(const DeltaBatch& batch, const DeltaRun& run, std::vector<std::byte>& out);
bool decode_delta_batch(std::span<const std::byte> raw, DeltaBatch& out);

// Decoding without allocation, for the fault handler: an index over raw bytes.
struct DeltaIndexLine {
  PageNumber page;
  std::uint16_t spans;
  std::uint16_t gap_offset, length_offset, byte_offset;  // into raw
};
static_assert(sizeof(DeltaIndexLine) == 16);
// Fills `lines`, one per delta, and checks everything: all spans are inside a page, and the columns
// end with the input. Returns the number of deltas, or -1 for corrupted bytes or more deltas than
// lines.
int index_delta_batch(std::span<const std::byte> raw, std::span<DeltaIndexLine> lines) noexcept;
// REQUIRES: `line` comes from index_delta_batch over the same bytes.
void apply_indexed_delta(std::span<const std::byte> raw, const DeltaIndexLine& line,
                         std::byte* page) noexcept;
// For normal code: appends the delta's spans and their bytes. REQUIRES: as above.
void expand_indexed_delta(std::span<const std::byte> raw, const DeltaIndexLine& line,
                          std::vector<DeltaSpan>& spans, std::vector<std::byte>& bytes);

}  // namespace vellum::format
