#include "memory/engine/file_memory.hpp"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "format/wire/types.hpp"
#include "memory/kernel/kernel.hpp"
#include "memory/kernel/racing_page.hpp"
#include "memory/paging/bits.hpp"
#include "memory/paging/pager.hpp"

namespace vellum::region {
namespace {

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14
constexpr std::size_t kReadPages = 256;

[[noreturn]] void refuse(const char* what, int error) {
  fail(Errc::out_of_memory, "{}: {}", what, std::strerror(error));
}

}  // namespace

ImageBacking::ImageBacking(std::size_t capacity_bytes, int image)
    : Backing(capacity_bytes, image, MAP_PRIVATE) {}

int ImageBacking::write(format::PageNumber first, std::span<const std::byte> bytes) noexcept {
  assert(bytes.size() % kPageBytes == 0);
  std::byte page[kPageBytes];
  for (std::size_t at = 0; at < bytes.size(); at += kPageBytes) {
    copy_racing_page(page, bytes.data() + at);
    std::byte* const to = base_copy(first) + at;
    if (std::memcmp(to, page, kPageBytes) != 0) std::memcpy(to, page, kPageBytes);
  }
  return 0;
}

void ImageBacking::show_image(format::PageNumber first, std::size_t count_pages) noexcept {
  forget_base_copies(first, count_pages);
  madvise(base_copy(first), count_pages * kPageBytes, MADV_DONTNEED);
}

FileMemory::FileMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
                       PrivatePages::Way best)
    : FileMemory(
          options, std::move(source), best,
          std::make_shared<ImageBacking>(options.capacity_bytes, options.image->descriptor())) {}

FileMemory::FileMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
                       PrivatePages::Way best, const std::shared_ptr<ImageBacking>& base_copies)
    : RegionMemory(options, std::move(source), base_copies),
      backing_(*base_copies),
      written_(data(), options.capacity_bytes, best),
      patched_(backing_.base_copy(0), options.capacity_bytes,
               std::max(best, PrivatePages::Way::scan)),
      foreign_(options_.image->take_adopted()) {
  assert(options.writable);
}

FileMemory::~FileMemory() { remove_route(this); }

void FileMemory::start() {
  add_route(range_.data(), range_.end(), this);
  const int error = protect_beyond(0, size_bytes());
  if (error != 0) refuse("cannot map the region", error);
}

int FileMemory::protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept {
  const auto [from, to] = std::minmax(old_size, new_size);
  if (from == to) return 0;
  const int access = new_size > old_size ? PROT_READ | PROT_WRITE : PROT_NONE;
  return mprotect(data() + from, to - from, access) == 0 ? 0 : errno;
}

FaultResult FileMemory::on_fault(const Fault& fault) noexcept {
  if (!contains(fault.address) || fault.signal_number != SIGBUS) return FaultResult::not_ours;
  report({"the page cannot be read from the image file",
          {},
          static_cast<PageNumber>(fault.address - data()) / kPageBytes,
          EIO});
  return FaultResult::lost;
}

// The memory is the kernel's, which counts it for the process.
MemoryUse FileMemory::use() noexcept {
  MemoryUse use;
  use.limit_bytes = options_.memory_limit_bytes;
  if (use.limit_bytes == 0) use.limit_bytes = Pager::of_process()->limit_bytes();
  return use;
}

bool FileMemory::make_present(PageNumber first, std::size_t count,
                              store::ReadFailure& failure) noexcept {
  if (count == 0) return true;
  int result = 0;
  do {
    result = madvise(address_of(first), count * kPageBytes, kPopulateRead);
  } while (result != 0 && (errno == EAGAIN || errno == EINTR));
  if (result == 0 || errno == EINVAL)
    return true;  // EINVAL: an older kernel fills pages at the access
  failure = {"the page cannot be read from the image file", {}, first, errno};
  return false;
}

bool FileMemory::make_present(std::span<const format::PageRange> ranges,
                              store::ReadFailure& failure) noexcept {
  return std::ranges::all_of(ranges, [&](const format::PageRange& range) {
    return make_present(range.first, range.count, failure);
  });
}

// Not MADV_DONTNEED, which drops stores. MADV_COLD only makes pages the first to be evicted. Advice
// that the kernel does not support changes nothing.
void FileMemory::advise(PageNumber first, std::size_t count, Advice advice) {
  constexpr int kCold = 20;  // MADV_COLD, Linux 5.4
  const int kernels = advice == Advice::sequential  ? MADV_SEQUENTIAL
                      : advice == Advice::random    ? MADV_RANDOM
                      : advice == Advice::will_need ? MADV_WILLNEED
                      : advice == Advice::dont_need ? kCold
                                                    : MADV_NORMAL;
  madvise(address_of(first), count * kPageBytes, kernels);
}

// A page behind the end of the file cannot be accessed and is zero.
std::uint64_t FileMemory::backed_bytes() const noexcept {
  return std::min(size_bytes(), format::pages_in(options_.image->file_bytes()) * kPageBytes);
}

bool FileMemory::is_foreign(PageNumber page) const noexcept {
  return std::binary_search(foreign_.begin(), foreign_.end(), page);
}

void FileMemory::collect_dirty(std::vector<PageNumber>& out, const std::vector<PageNumber>* known) {
  assert(std::is_sorted(foreign_.begin(), foreign_.end()));
  assert(known == nullptr || std::is_sorted(known->begin(), known->end()));
  const PageNumber end = backed_bytes() / kPageBytes;
  if (known == nullptr) {
    written_.collect(0, end, found_);
    sort_unique(found_);
    found_.erase(std::lower_bound(found_.begin(), found_.end(), end), found_.end());
    known = &found_;
  }
  // Pages that a rollback of grow() has removed are no longer foreign.
  foreign_.erase(std::lower_bound(foreign_.begin(), foreign_.end(), end), foreign_.end());
  out.reserve(out.size() + known->size() + foreign_.size());
  std::set_union(known->begin(), known->end(), foreign_.begin(), foreign_.end(),
                 std::back_inserter(out));
  if (known == &found_) found_.clear();
}

// A foreign page has no other copy.
void FileMemory::drop_copies(const std::vector<PageNumber>& pages) {
  std::vector<PageNumber> own;
  std::set_difference(pages.begin(), pages.end(), foreign_.begin(), foreign_.end(),
                      std::back_inserter(own));
  for_ranges(own, SIZE_MAX, [&](PageNumber first, std::size_t count) {
    drop_pages(address_of(first), count * kPageBytes);
  });
}

void FileMemory::discard(const std::vector<PageNumber>& pages) {
  drop_copies(pages);
  std::vector<PageNumber> foreign;
  std::copy_if(pages.begin(), pages.end(), std::back_inserter(foreign),
               [&](PageNumber page) { return is_foreign(page); });
  if (foreign.empty()) return;
  // The image has other content until the next commit.
  assert(options_.open_committed);
  const auto committed = options_.open_committed();
  for_ranges(foreign, kReadPages, [&](PageNumber first, std::size_t count) {
    committed->read(first, count, address_of(first));
  });
}

const std::byte* FileMemory::base_copy_of(PageNumber page) const noexcept {
  if (page >= backed_bytes() / kPageBytes) return nullptr;
  if (backing_.has_base_copy(page)) return backing_.base_copy(page);
  // A foreign page without a base copy is not part of the commit, or has become zero.
  return is_foreign(page) ? nullptr : backing_.base_copy(page);
}

void FileMemory::replace_source(std::shared_ptr<store::PageSource> source,
                                const std::vector<PageNumber>&) {
  source_.replace(std::move(source));
}

void FileMemory::resize(std::uint64_t size_bytes) {
  assert(size_bytes % kPageBytes == 0 && size_bytes <= options_.capacity_bytes);
  const std::uint64_t old = this->size_bytes();
  if (size_bytes >= old) return grow(old, size_bytes);
  size_bytes_.store(size_bytes, std::memory_order_release);
  if (const int error = protect_beyond(old, size_bytes); error != 0)
    refuse("cannot shrink the region", error);
  options_.image->resize(size_bytes);
}

// The file first: an accessible page must exist in the file.
void FileMemory::grow(std::uint64_t old_size, std::uint64_t new_size) {
  options_.image->resize(new_size);
  if (const int error = protect_beyond(old_size, new_size); error != 0) {
    options_.image->resize(old_size);
    refuse("cannot grow the region", error);
  }
  size_bytes_.store(new_size, std::memory_order_release);
}

}  // namespace vellum::region
