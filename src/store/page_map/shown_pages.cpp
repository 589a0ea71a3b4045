#include "store/page_map/shown_pages.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace vellum::store {

using format::PageKind;
using format::PageNumber;

std::uint64_t PageSet::add(Stretch& s, std::uint64_t first, std::uint64_t count) {
  assert(count >= 1 && first + count <= kStretchPages);
  if (s.pages == kStretchPages) return 0;
  const std::uint64_t before = s.pages;
  if (count == kStretchPages) {
    s.words.reset();
    s.pages = kStretchPages;
    return s.pages - before;
  }
  if (s.words == nullptr) s.words = std::make_unique<std::uint64_t[]>(kStretchPages / 64);
  for (std::uint64_t at = first, end = first + count; at < end;) {
    const std::uint64_t n = std::min(end - at, 64 - at % 64);
    const std::uint64_t mask = (n == 64 ? ~0ULL : (1ULL << n) - 1) << at % 64;
    std::uint64_t& word = s.words[at / 64];
    s.pages += static_cast<std::uint64_t>(std::popcount(mask & ~word));
    word |= mask;
    at += n;
  }
  assert(s.pages <= kStretchPages);
  if (s.pages == kStretchPages) s.words.reset();
  return s.pages - before;
}

std::uint64_t PageSet::add(PageNumber first, std::uint64_t count) {
  std::uint64_t added = 0;
  for (const PageNumber end = first + count; first < end;) {
    const std::uint64_t within = first % kStretchPages;
    const std::uint64_t n = std::min(end - first, kStretchPages - within);
    added += add(stretches_[first / kStretchPages], within, n);
    first += n;
  }
  return added;
}

bool PageSet::contains(PageNumber page) const {
  const auto at = stretches_.find(page / kStretchPages);
  if (at == stretches_.end()) return false;
  const Stretch& s = at->second;
  if (s.words == nullptr) return s.pages != 0;
  const std::uint64_t within = page % kStretchPages;
  return (s.words[within / 64] >> within % 64 & 1) != 0;
}

bool ShownPages::take(PageNumber page, std::uint32_t count, PageKind kind) {
  assert(kind != PageKind::delta || count == 1);
  if (kind == PageKind::delta) {
    if (hidden_.contains(page)) return false;
    nonzero_ += mentioned_.add(page, 1);
    return true;
  }
  const std::uint64_t fresh = mentioned_.add(page, count);
  if (kind == PageKind::base) nonzero_ += fresh;
  return hidden_.add(page, count) != 0;
}

void ShownPages::take_parts(PageNumber page, std::uint32_t count, PageKind kind,
                            const std::function<void(std::uint32_t, std::uint32_t)>& visit) {
  for (std::uint32_t from = 0; from < count;) {
    std::uint32_t n = 0;
    while (from + n < count && !hidden_.contains(page + from + n)) ++n;
    if (n != 0) visit(from, n);
    from += n + 1;  // the next page is hidden, or this is the end
  }
  take(page, count, kind);
}

}  // namespace vellum::store
