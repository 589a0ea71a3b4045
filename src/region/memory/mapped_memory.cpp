#include "region/memory/mapped_memory.hpp"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vellum/error.hpp>

#include "base/zeros.hpp"

#include "base/fail.hpp"
#include "format/types.hpp"

namespace vellum::region {
namespace {

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14
constexpr std::size_t kStagePages = 256;
constexpr std::byte kZeroPage[kPageBytes] = {};

bool is_zero(const std::byte* page) noexcept { return base::is_zero({page, kPageBytes}); }

// Calls `visit` with each range of neighbours, at most `limit` long.
template <typename Visit>
void for_ranges(std::span<const PageNumber> pages, std::size_t limit, const Visit& visit) {
  for (std::size_t i = 0; i < pages.size();) {
    std::size_t n = 1;
    while (n < limit && i + n < pages.size() && pages[i + n] == pages[i] + n) ++n;
    visit(pages[i], n);
    i += n;
  }
}

// The same, but with a few other pages between them, which saves kernel calls. Pages that are
// forgotten with a range are mapped again when they are needed.
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

MappedMemory::MappedMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
                           PrivatePages::Way best)
    : RegionMemory(options, std::move(source)),
      written_(base_, options.capacity_bytes, best),
      patched_(backing_.base_copy(0), options.capacity_bytes,
               std::max(best, PrivatePages::Way::scan)),
      foreign_(options_.image->take_adopted()) {}

void MappedMemory::start() {
  add_route(base_, base_ + options_.capacity_bytes, this);
  const int error = protect_beyond(0, size_bytes());
  if (error != 0) fail(Errc::out_of_memory, "cannot map the region: {}", std::strerror(error));
}

int MappedMemory::protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept {
  const auto [from, to] = std::minmax(old_size, new_size);
  if (from == to) return 0;
  const int access = new_size > old_size ? PROT_READ | PROT_WRITE : PROT_NONE;
  return mprotect(base_ + from, to - from, access) == 0 ? 0 : errno;
}

// This signal does not come from pages that wait to come in.
int MappedMemory::fault_signal() const noexcept { return SIGBUS; }

FaultResult MappedMemory::on_fault(const Fault& fault) noexcept {
  const bool inside = fault.address >= base_ && fault.address < base_ + size_bytes();
  if (!inside || fault.signal_number != SIGBUS) return FaultResult::not_ours;
  report({"the page cannot be read from the image file",
          {},
          static_cast<PageNumber>(fault.address - base_) / kPageBytes,
          EIO});
  return FaultResult::lost;
}

bool MappedMemory::make_present(PageNumber first, std::size_t count,
                                store::ReadFailure& failure) noexcept {
  if (count == 0) return true;
  int result = 0;
  do {
    result = madvise(base_ + first * kPageBytes, count * kPageBytes, kPopulateRead);
  } while (result != 0 && (errno == EAGAIN || errno == EINTR));
  if (result == 0 || errno == EINVAL) return true;  // EINVAL: an older kernel pages in by itself
  failure = {"the page cannot be read from the image file", {}, first, errno};
  return false;
}

// Avoids MADV_DONTNEED, which drops what was stored. MADV_COLD only says which pages to take first.
// Advice that the kernel does not know or like changes nothing.
void MappedMemory::advise(PageNumber first, std::size_t count, Advice advice) {
  constexpr int kCold = 20;  // MADV_COLD, Linux 5.4
  const int kernels = advice == Advice::sequential  ? MADV_SEQUENTIAL
                      : advice == Advice::random    ? MADV_RANDOM
                      : advice == Advice::will_need ? MADV_WILLNEED
                      : advice == Advice::dont_need ? kCold
                                                    : MADV_NORMAL;
  madvise(base_ + first * kPageBytes, count * kPageBytes, kernels);
}

// A page behind the end of the file cannot be touched and is zero.
std::uint64_t MappedMemory::backed_bytes() const noexcept {
  return std::min(size_bytes(), format::pages_in(options_.image->file_bytes()) * kPageBytes);
}

bool MappedMemory::is_foreign(PageNumber page) const noexcept {
  return std::binary_search(foreign_.begin(), foreign_.end(), page);
}

void MappedMemory::find_dirty(std::vector<PageNumber>& out) {
  std::vector<PageNumber> written;
  const PageNumber end = backed_bytes() / kPageBytes;
  written_.collect(0, end, written);
  find_unfinished(out);
  out = merge(out, written);
}

void MappedMemory::find_unfinished(std::vector<PageNumber>& out) {
  // Pages cut off by a rollback of grow() are no longer foreign.
  const PageNumber end = backed_bytes() / kPageBytes;
  foreign_.erase(std::lower_bound(foreign_.begin(), foreign_.end(), end), foreign_.end());
  out = merge(out, foreign_);
}

// A foreign page has no other copy.
void MappedMemory::drop_copies(const std::vector<PageNumber>& pages) {
  std::vector<PageNumber> own;
  std::set_difference(pages.begin(), pages.end(), foreign_.begin(), foreign_.end(),
                      std::back_inserter(own));
  for_ranges(own, SIZE_MAX, [&](PageNumber first, std::size_t count) {
    madvise(base_ + first * kPageBytes, count * kPageBytes, MADV_DONTNEED);
  });
}

void MappedMemory::put_back(const std::vector<PageNumber>& pages) {
  drop_copies(pages);
  std::vector<PageNumber> foreign;
  std::copy_if(pages.begin(), pages.end(), std::back_inserter(foreign),
               [&](PageNumber page) { return is_foreign(page); });
  if (foreign.empty()) return;
  // The image has other content; it follows with the next commit.
  const auto committed = options_.open_committed();
  for_ranges(foreign, kStagePages, [&](PageNumber first, std::size_t count) {
    committed->read(first, count, base_ + first * kPageBytes);
  });
}

// The image differs from the last commit there, so the content comes from the store.
void MappedMemory::stage_foreign(std::span<const PageNumber> pages) {
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

void MappedMemory::prepare_commit(std::span<const PageNumber> dirty) {
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

const std::byte* MappedMemory::base_copy_of(PageNumber page) const noexcept {
  if (page >= backed_bytes() / kPageBytes) return nullptr;
  if (backing_.has_base_copy(page)) return backing_.base_copy(page);
  // A foreign page without a base copy is not part of the commit, or has become zero.
  return is_foreign(page) ? nullptr : backing_.base_copy(page);
}

// Writes the file's first pages last, one by one. They tell a concurrent reader where everything
// else is (LMDB's meta pages, SQLite's header), and everything else must be there by then.
void MappedMemory::write_backwards(std::span<const PageNumber> pages) {
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

void MappedMemory::write_image(std::span<const PageNumber> pages) {
  options_.image->write(staged_, [&](PageNumber page) {
    return backing_.has_base_copy(page) ? backing_.base_copy(page) : kZeroPage;
  });
  std::vector<PageNumber> patched, changed;
  // Pages that the file is about to lose need not be written.
  const PageNumber kept = file_bytes_ ? format::pages_in(*file_bytes_) : UINT64_MAX;
  const PageNumber end = std::min(backed_bytes() / kPageBytes, kept);
  for_neighbourhoods(pages, [&](PageNumber first, std::size_t count) {
    if (first < end) patched_.collect(first, std::min<PageNumber>(first + count, end), patched);
  });
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

// The commit has happened, whatever becomes of the image. Pages that the image does not take are
// tried again with the next commit; a crash before that is repaired from the store.
void MappedMemory::finish_commit(std::span<const PageNumber> dirty) noexcept {
  try {
    write_image(dirty);
    if (foreign_.empty() && options_.image->adopting()) options_.image->note_adoption_committed();
    complained_ = false;
  } catch (const std::exception& e) {
    foreign_ = merge(foreign_, dirty);
    if (!complained_) {
      std::fprintf(stderr, "vellum: committed, but not in the image yet: %s\n", e.what());
    }
    complained_ = true;
  }
  forget_base_copies(dirty);
}

void MappedMemory::abandon_commit(std::span<const PageNumber> dirty) noexcept {
  forget_base_copies(dirty);
}

void MappedMemory::forget_base_copies(std::span<const PageNumber> pages) noexcept {
  for_neighbourhoods(pages,
                     [&](PageNumber first, std::size_t count) { backing_.forget(first, count); });
}

void MappedMemory::note_closed(const format::Version& head) noexcept {
  // If this does not complete, the image counts as in use, and the next opening compares it with
  // the head.
  try {
    options_.image->drop_growth();
    if (foreign_.empty() && !options_.image->adopting()) options_.image->close(head);
  } catch (const std::exception&) {
  }
}

void MappedMemory::resize(std::uint64_t size_bytes) {
  const std::uint64_t old = this->size_bytes();
  if (size_bytes < old) {
    RegionMemory::resize(size_bytes);
    options_.image->resize(size_bytes);
    return;
  }
  options_.image->resize(size_bytes);
  try {
    RegionMemory::resize(size_bytes);
  } catch (...) {
    options_.image->resize(old);
    throw;
  }
}

}  // namespace vellum::region
