#include "run/live/read_views.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include "base/round_up.hpp"
#include "format/wire/types.hpp"
#include "memory/kernel/guarded_copy.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

using format::kPageBytes;

std::size_t bytes_between(const std::byte* begin, const std::byte* end) {
  return static_cast<std::size_t>(end - begin);
}

bool map_again(std::byte* begin, std::byte* end, int type, int fd, std::uint64_t offset_bytes) {
  return VELLUM_REAL(mmap)(begin, bytes_between(begin, end), PROT_READ, type | MAP_FIXED, fd,
                           static_cast<off_t>(offset_bytes)) != MAP_FAILED;
}

// The program may only read these pages; they are the same pages before and after.
void copy_to_view(std::byte* to, const std::byte* from, std::size_t length_bytes) {
  const auto before = reinterpret_cast<std::uintptr_t>(to) % kPageBytes;
  const std::size_t pages_bytes = before + length_bytes;
  if (VELLUM_REAL(mprotect)(to - before, pages_bytes, PROT_READ | PROT_WRITE) != 0) return;
  region::copy_guarded(to, from, length_bytes);
  VELLUM_REAL(mprotect)(to - before, pages_bytes, PROT_READ);
}

}  // namespace

ReadViews& read_views() noexcept {
  static constinit ReadViews views;
  return views;
}

bool ReadViews::add(const std::byte* data, int fd, std::byte* begin, std::byte* end,
                    std::uint64_t offset_bytes) noexcept {
  const std::lock_guard lock(lock_);
  if (count_ == kMax || !map_again(begin, end, MAP_PRIVATE, fd, offset_bytes)) return false;
  views_[count_++] = {data, begin, end, offset_bytes};
  return true;
}

bool ReadViews::any_of(const std::byte* data) noexcept {
  if (!any()) return false;
  const std::lock_guard lock(lock_);
  return std::any_of(views_.begin(), views_.begin() + static_cast<std::ptrdiff_t>(count_),
                     [&](const View& view) { return view.data == data; });
}

bool ReadViews::contains(const void* address) noexcept {
  if (!any()) return false;
  const auto* const at = static_cast<const std::byte*>(address);
  const std::lock_guard lock(lock_);
  return std::any_of(views_.begin(), views_.begin() + static_cast<std::ptrdiff_t>(count_),
                     [&](const View& view) { return view.begin <= at && at < view.end; });
}

void ReadViews::show(const std::byte* data, std::uint64_t offset_bytes,
                     std::uint64_t length_bytes) noexcept {
  if (!any()) return;
  const std::lock_guard lock(lock_);
  for (std::size_t i = 0; i < count_; ++i) {
    const View& view = views_[i];
    if (view.data != data) continue;
    const std::uint64_t from = std::max(offset_bytes, view.offset_bytes);
    const std::uint64_t to = std::min(offset_bytes + length_bytes,
                                      view.offset_bytes + bytes_between(view.begin, view.end));
    if (from < to) copy_to_view(view.begin + (from - view.offset_bytes), data + from, to - from);
  }
}

// A hole in the middle leaves a view at each end. If there is no slot for the second, that part
// only shows the last commit.
void ReadViews::forget(const void* address, std::size_t length_bytes) noexcept {
  if (!any()) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = begin + base::round_up(length_bytes, kPageBytes);
  const std::lock_guard lock(lock_);
  for (std::size_t i = count_; i-- > 0;) {
    const View view = views_[i];
    const auto from = reinterpret_cast<std::uintptr_t>(view.begin);
    const auto to = reinterpret_cast<std::uintptr_t>(view.end);
    if (end <= from || to <= begin) continue;
    remove(i);
    if (from < begin && count_ < kMax)
      views_[count_++] = {view.data, view.begin, view.begin + (begin - from), view.offset_bytes};
    if (end < to && count_ < kMax)
      views_[count_++] = {view.data, view.begin + (end - from), view.end,
                          view.offset_bytes + (end - from)};
  }
}

void ReadViews::release(const std::byte* data, int fd) noexcept {
  if (!any()) return;
  const std::lock_guard lock(lock_);
  for (std::size_t i = count_; i-- > 0;) {
    const View view = views_[i];
    if (view.data != data) continue;
    if (fd < 0 || !map_again(view.begin, view.end, MAP_SHARED, fd, view.offset_bytes))
      VELLUM_REAL(madvise)(view.begin, bytes_between(view.begin, view.end), MADV_DONTNEED);
    remove(i);
  }
}

}  // namespace vellum::preload
