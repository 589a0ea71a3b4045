#include "interfaces/atomic_file/page_watch.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "format/records/page_diff.hpp"

namespace vellum::atomic_file {
using cards::MarkedPage;
using format::kLineBytes;
using format::kPageBytes;

PageWatch::PageWatch(std::byte* data, std::uint64_t capacity_bytes, const MediumFile& image)
    : data_(data),
      image_(image),
      written_(data, capacity_bytes),
      base_copies_(capacity_bytes),
      has_base_copy_(capacity_bytes / kPageBytes) {
  assert(data != nullptr && capacity_bytes % kPageBytes == 0);
}

void PageWatch::make_base_copy(std::uint64_t page) {
  if (has_base_copy_.data()[page] != std::byte{0}) return;
  const std::uint64_t begin = page * kPageBytes;
  const std::uint64_t size = image_.size_bytes();
  if (begin < size)
    image_.read({base_copy(page), std::min<std::uint64_t>(kPageBytes, size - begin)}, begin);
  has_base_copy_.data()[page] = std::byte{1};
}

void PageWatch::collect(std::uint64_t size_bytes, std::vector<MarkedPage>& out) {
  // The kernel reports a page once, so it stays in found_ also after an exception.
  written_.collect(0, format::pages_in(size_bytes), found_);
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  format::PageDiff diff;
  for (const format::PageNumber page : found_) {
    make_base_copy(page);
    diff_page(base_copy(page), data_ + page * kPageBytes, diff);
    if (diff.lines != 0) out.push_back({static_cast<std::uint32_t>(page), diff.lines});
  }
}

// The kernel reports the page of a line that has changed again since its copy, so found_ is no
// longer needed.
void PageWatch::settle(std::span<const format::RedoSpan> spans) noexcept {
  for (const format::RedoSpan& span : spans) {
    const std::uint64_t page = span.first_line * kLineBytes / kPageBytes;
    assert(span.count != 0 && span.first_line % 64 + span.count <= 64);
    if (has_base_copy_.data()[page] == std::byte{0}) continue;
    std::memcpy(base_copies_.data() + span.first_line * kLineBytes, span.bytes,
                span.count * kLineBytes);
  }
  found_.clear();
}

void PageWatch::forget(std::uint64_t begin_bytes, std::uint64_t end_bytes) noexcept {
  assert(begin_bytes <= end_bytes);
  const std::uint64_t begin = begin_bytes / kPageBytes;
  const std::uint64_t end = format::pages_in(end_bytes);
  const std::uint64_t whole = format::pages_in(begin_bytes);
  if (whole != begin && has_base_copy_.data()[begin] != std::byte{0})
    std::memset(base_copies_.data() + begin_bytes, 0, whole * kPageBytes - begin_bytes);
  for (std::uint64_t page = whole; page < end; ++page) {
    if (has_base_copy_.data()[page] == std::byte{0}) continue;
    has_base_copy_.data()[page] = std::byte{0};
    std::memset(base_copy(page), 0, kPageBytes);
  }
  std::erase_if(found_, [&](format::PageNumber page) { return page >= whole; });
}

}  // namespace vellum::atomic_file
