// The image follows a commit: base copies are corrected, patched by the encoder, and written.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <utility>

#include "base/memory/zeros.hpp"
#include "format/image_tail.hpp"
#include "format/wire/types.hpp"
#include "memory/engine/file_memory.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {
namespace {

constexpr std::size_t kStagePages = 256;
constexpr std::byte kZeroPage[kPageBytes] = {};

bool is_zero(const std::byte* page) noexcept { return base::is_zero({page, kPageBytes}); }

// Like for_ranges(), but joins ranges with a few other pages between them, which saves system
// calls. Pages that are forgotten with a range are mapped again when they are needed.
template <typename Visit>
void for_neighbourhoods(std::span<const PageNumber> pages, const Visit& visit) {
  constexpr PageNumber kGap = 8;
  for (std::size_t i = 0; i < pages.size();) {
    const PageNumber first = pages[i];
    PageNumber last = first;
    for (++i; i < pages.size() && pages[i] - last <= kGap; ++i) last = pages[i];
    visit(first, static_cast<std::size_t>(last - first + 1));
  }
}

std::vector<PageNumber> merge(const std::vector<PageNumber>& a, std::span<const PageNumber> b) {
  std::vector<PageNumber> out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

}  // namespace

void FileMemory::prepare_commit(std::span<const PageNumber> dirty) {
  staged_.clear();
  std::set_intersection(dirty.begin(), dirty.end(), foreign_.begin(), foreign_.end(),
                        std::back_inserter(staged_));
  std::size_t next = 0;
  for (const PageNumber page : dirty) {
    if (next < staged_.size() && staged_[next] == page) {
      ++next;
    } else if (!is_zero(backing_.base_copy(page))) {
      backing_.note_base_copies(page, 1);
    }
  }
  stage_foreign(staged_);
  options_.image->announce(dirty);
}

// The pages become foreign first: whatever part of them reaches the file, their base copies are the
// store's.
bool FileMemory::write_tail(const format::Version& head, std::uint64_t from_bytes,
                            std::uint64_t end_bytes) {
  store::ImageFile& image = *options_.image;
  if (failure_reported_ || image.adopting() || !head.file_bytes.has_value()) return false;
  const std::uint64_t begin = *head.file_bytes;
  const std::uint64_t kept = std::max(begin, image.tail_end_bytes());
  if (from_bytes < kept || end_bytes <= begin || end_bytes < kept ||
      end_bytes - begin > format::kMaxImageTailBytes)
    return false;
  std::vector<PageNumber> pages;
  for (PageNumber page = begin / kPageBytes; page < format::pages_in(end_bytes); ++page)
    pages.push_back(page);
  const bool others = !foreign_.empty() && foreign_.front() < pages.front();
  if (others) return false;
  auto before = std::exchange(foreign_, merge(foreign_, pages));
  if (image.write_tail(head, {data() + begin, end_bytes - begin})) return true;
  foreign_ = std::move(before);
  return false;
}

// The image differs from the last commit there, so the content comes from the store.
void FileMemory::stage_foreign(std::span<const PageNumber> pages) {
  if (pages.empty()) return;
  const auto committed = options_.open_committed();
  std::vector<std::byte> content(kStagePages * kPageBytes);
  for_ranges(pages, kStagePages, [&](PageNumber first, std::size_t count) {
    if (committed->zeros_from(first, count) >= count) return;
    committed->read(first, count, content.data());
    for (std::size_t i = 0; i < count; ++i) {
      const std::byte* const page = content.data() + i * kPageBytes;
      if (is_zero(page)) continue;
      std::memcpy(backing_.base_copy(first + i), page, kPageBytes);
      backing_.note_base_copies(first + i, 1);
    }
  });
}

// Writes the file's first pages last, one by one. A concurrent reader finds all other pages by them
// (LMDB's meta pages, SQLite's header), and these must be written by then.
void FileMemory::write_backwards(std::span<const PageNumber> pages) {
  constexpr PageNumber kHeaderPages = 2;
  const auto write = [&](PageNumber first, std::size_t count) {
    options_.image->write(first, {backing_.base_copy(first), count * kPageBytes});
  };
  std::size_t headers = 0;
  while (headers < pages.size() && pages[headers] < kHeaderPages) ++headers;
  std::vector<std::pair<PageNumber, std::size_t>> ranges;
  for_ranges(pages.subspan(headers), SIZE_MAX,
             [&](PageNumber first, std::size_t count) { ranges.emplace_back(first, count); });
  for (std::size_t i = ranges.size(); i-- > 0;) write(ranges[i].first, ranges[i].second);
  while (headers-- > 0) write(pages[headers], 1);
}

void FileMemory::write_image(std::span<const PageNumber> pages) {
  options_.image->write(staged_, [&](PageNumber page) {
    return backing_.has_base_copy(page) ? backing_.base_copy(page) : kZeroPage;
  });
  std::vector<PageNumber> patched, changed;
  // Pages that are about to be cut off need not be written.
  const PageNumber kept = file_bytes_ ? format::pages_in(*file_bytes_) : UINT64_MAX;
  const PageNumber end = std::min(backed_bytes() / kPageBytes, kept);
  for_neighbourhoods(pages, [&](PageNumber first, std::size_t count) {
    if (first < end) patched_.collect(first, std::min<PageNumber>(first + count, end), patched);
  });
  sort_unique(patched);
  patched.erase(std::lower_bound(patched.begin(), patched.end(), end), patched.end());
  std::set_difference(patched.begin(), patched.end(), staged_.begin(), staged_.end(),
                      std::back_inserter(changed));
  write_backwards(changed);
  options_.image->note_commit(file_bytes_);
  if (foreign_.empty()) return;
  std::vector<PageNumber> left;
  std::set_difference(foreign_.begin(), foreign_.end(), pages.begin(), pages.end(),
                      std::back_inserter(left));
  foreign_ = std::move(left);
}

// The commit is durable, whether or not the image can be written. Failed pages are written again by
// the next commit; after a crash before that, the image is repaired from the store.
void FileMemory::finish_commit(std::span<const PageNumber> dirty) noexcept {
  try {
    write_image(dirty);
    if (foreign_.empty() && options_.image->adopting()) options_.image->note_adoption_committed();
    failure_reported_ = false;
  } catch (const std::exception& e) {
    foreign_ = merge(foreign_, dirty);
    if (!failure_reported_) {
      std::fprintf(stderr, "vellum: committed, but not in the image yet: %s\n", e.what());
    }
    failure_reported_ = true;
  }
  forget_base_copies(dirty);
}

void FileMemory::abandon_commit(std::span<const PageNumber> dirty) noexcept {
  forget_base_copies(dirty);
}

void FileMemory::forget_base_copies(std::span<const PageNumber> pages) noexcept {
  for_neighbourhoods(
      pages, [&](PageNumber first, std::size_t count) { backing_.show_image(first, count); });
}

void FileMemory::note_closed(const format::Version& head) noexcept {
  // If this does not complete, the image counts as in use, and the next opening compares it with
  // the head.
  try {
    options_.image->drop_growth();
    if (foreign_.empty() && !options_.image->adopting()) options_.image->close(head);
  } catch (const std::exception&) {
  }
}

}  // namespace vellum::region
