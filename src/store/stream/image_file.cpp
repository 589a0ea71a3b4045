// An image in use. Opening one is in image_open.cpp.
#include "store/stream/image_file.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>

#include "base/bytes/checksum.hpp"
#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/round_up.hpp"
#include "format/wire/types.hpp"
#include "store/catalog/names.hpp"
#include "store/stream/image_tail.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageNumber;

namespace {

constexpr std::size_t kPagesWritten = 256;
// After this many written bytes the image is synced and the touched ranges are cleared. This bounds
// the comparison after a crash.
constexpr std::uint64_t kSyncEveryBytes = 256ULL << 20;

// Waits until the kernel's clock for file times is past `time_ns`. A later change of the file then
// changes its times. Takes at most 4 ms; up to 50 ms if the times are not this kernel's.
void wait_until_past(std::int64_t time_ns) {
  using namespace std::chrono_literals;
  for (int tries = 0; tries < 50; ++tries) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (base::nanoseconds_of(now) > time_ns) return;
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace

ImageFile::ImageFile(PackStore& store, std::string branch, std::unique_ptr<base::File> file,
                     WriteIntent intent)
    : store_(store),
      branch_(std::move(branch)),
      file_(std::move(file)),
      intent_(std::move(intent)),
      file_bytes_(file_->size_bytes()) {
  region_bytes_ = base::round_up(file_bytes_, kPageBytes);
  committed_bytes_ = file_bytes_;
}

int ImageFile::descriptor() const {
  const int fd = file_->descriptor();
  if (fd < 0) fail(Errc::unsupported, "{}: this file cannot be mapped", path());
  return fd;
}

void ImageFile::publish(format::ImageState state, const base::FileIdentity& identity) {
  state.device = identity.device;
  state.inode = identity.inode;
  state.size_bytes = identity.size_bytes;
  state.modified_ns = identity.modified_ns;
  state.changed_ns = identity.changed_ns;
  state.born_ns = identity.born_ns;
  const std::string directory = store_.branches_directory() + "/" + branch_;
  base::publish_file(store_.fs(), store_.tmp_directory(), directory, kImageStateName,
                     format::encode_image_state(state, store_.file_seal()), true);
  state_ = std::move(state);
}

void ImageFile::read(PageNumber first, std::span<std::byte> out) const {
  const std::uint64_t at = first * kPageBytes;
  const std::size_t n =
      at < file_bytes_ ? std::min<std::uint64_t>(out.size(), file_bytes_ - at) : 0;
  if (n > 0) file_->pread(out.first(n), at);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(n), out.end(), std::byte{0});
}

void ImageFile::set_size(std::uint64_t bytes) {
  assert(bytes <= format::kMaxRegionBytes);
  if (bytes == file_bytes_) return;
  with_tail_.reset();
  file_->truncate(bytes);
  file_bytes_ = bytes;
}

void ImageFile::resize(std::uint64_t region_bytes) {
  assert(region_bytes % kPageBytes == 0);
  if (region_bytes == region_bytes_) return;
  if (exact_) {
    set_size(std::min(file_bytes_, region_bytes));
    region_bytes_ = region_bytes;
    return;
  }
  // A file that ended within its last page gets the same end again.
  const bool back =
      region_bytes < region_bytes_ && base::round_up(committed_bytes_, kPageBytes) == region_bytes;
  const std::uint64_t bytes = back ? committed_bytes_ : region_bytes;
  with_tail_.reset();
  file_->truncate(bytes);
  file_bytes_ = bytes;
  region_bytes_ = region_bytes;
}

// The size is exact to the byte: every process sees the file's real size, and only the region has
// spare room. A small extension writes a byte, which takes the kernel 6 us. Truncating or extending
// a mapped file takes 35 us, since the kernel then searches for mappings past the end.
void ImageFile::extend(std::uint64_t file_bytes) {
  exact_ = true;
  if (file_bytes <= file_bytes_) return;
  constexpr std::uint64_t kLittleBytes = 64u << 10;
  if (file_bytes - file_bytes_ > kLittleBytes) return set_size(file_bytes);
  const std::byte zero{0};
  with_tail_.reset();
  file_->pwrite({&zero, 1}, file_bytes - 1);
  file_bytes_ = file_bytes;
}

void ImageFile::drop_growth(std::uint64_t keep_bytes) {
  if (exact_) {
    set_size(std::min(file_bytes_, std::max({committed_bytes_, tail_end_bytes_, keep_bytes})));
  } else if (keep_bytes == 0) {
    resize(base::round_up(committed_bytes_, kPageBytes));
  }
}

void ImageFile::announce(std::span<const PageNumber> pages) {
  with_context(path(), [&] { intent_.touch(pages); });
}

// Past the file's end, the last page is written only if it is not zero there. Another program's
// file thus keeps its size.
void ImageFile::write_range(PageNumber first, std::span<const std::byte> content) {
  assert(content.size() % kPageBytes == 0);
  const std::uint64_t at = first * kPageBytes;
  if (at + content.size() > file_bytes_) {
    const std::size_t inside = file_bytes_ > at ? file_bytes_ - at : 0;
    const auto tail = content.subspan(inside);
    const bool zero =
        std::all_of(tail.begin(), tail.end(), [](std::byte b) { return b == std::byte{0}; });
    if (zero && base::round_up(file_bytes_, kPageBytes) >= at + content.size())
      content = content.first(inside);
  }
  if (content.empty()) return;
  with_tail_.reset();
  file_->pwrite(content, at);
  file_bytes_ = std::max(file_bytes_, at + content.size());
  unsynced_bytes_ += content.size();
}

// Writes the pages of `content` that differ from the file's. REQUIRES: whole pages.
void ImageFile::write_changed(PageNumber first, std::span<const std::byte> content) {
  assert(content.size() % kPageBytes == 0);
  std::vector<std::byte> held(content.size());
  read(first, held);
  const std::size_t pages = content.size() / kPageBytes;
  const auto same = [&](std::size_t i) {
    return std::memcmp(content.data() + i * kPageBytes, held.data() + i * kPageBytes, kPageBytes) ==
           0;
  };
  for (std::size_t i = 0; i < pages;) {
    std::size_t n = 0;
    while (i + n < pages && !same(i + n)) ++n;
    if (n > 0) write_range(first + i, content.subspan(i * kPageBytes, n * kPageBytes));
    i += n + 1;
  }
}

void ImageFile::write(PageNumber first, std::span<const std::byte> content) {
  write_range(first, content);
}

void ImageFile::write(std::span<const PageNumber> pages,
                      const std::function<const std::byte*(PageNumber)>& content) {
  assert(std::is_sorted(pages.begin(), pages.end()));
  std::vector<std::byte> range;
  for (std::size_t i = 0; i < pages.size();) {
    std::size_t n = 1;
    while (n < kPagesWritten && i + n < pages.size() && pages[i + n] == pages[i] + n) ++n;
    range.resize(n * kPageBytes);
    for (std::size_t k = 0; k < n; ++k) {
      std::memcpy(range.data() + k * kPageBytes, content(pages[i + k]), kPageBytes);
    }
    write_changed(pages[i], range);
    i += n;
  }
}

// Truncating the file drops the pages past its end from mappings. The commit records them as empty.
void ImageFile::note_commit(const std::optional<std::uint64_t>& file_bytes) {
  if (file_bytes.has_value()) {
    exact_ = true;
    set_size(*file_bytes);
  }
  committed_bytes_ = file_bytes_;
  forget_tail();
  sync_if_due();
}

// A failed flush is not retried: the kernel may have dropped the bytes that it could not write, and
// a second flush would succeed.
void ImageFile::sync() {
  if (sync_failed_) fail(Errc::io, "{}: an earlier flush failed", path());
  sync_failed_ = true;
  file_->sync_data();
  sync_failed_ = false;
}

void ImageFile::sync_if_due() {
  if (unsynced_bytes_ < kSyncEveryBytes || state_.adopting || sync_failed_) return;
  sync();
  unsynced_bytes_ = 0;
  intent_.forget();
}

// The record follows the bytes, and replaces the previous one in one write: after a kill, each call
// has happened or not. Neither is flushed: after a power failure the boot is another one.
bool ImageFile::write_tail(const format::Version& head, std::span<const std::byte> content) {
  assert(exact_ && head.file_bytes.has_value() && !content.empty());
  const std::uint64_t begin = *head.file_bytes, end = begin + content.size();
  const std::uint64_t boot = tail_boot();
  assert(tail_end_bytes_ <= end);
  if (content.size() > format::kMaxImageTailBytes || boot == 0) return false;
  if (tail_ == nullptr) tail_ = open_tail(store_, branch_, true);
  if (AskForBranch::is_asked(*tail_)) return false;
  if (tail_end_bytes_ == end) return true;
  const std::uint64_t from = std::max(begin, tail_end_bytes_);
  file_->pwrite(content.subspan(from - begin), from);
  file_bytes_ = std::max(file_bytes_, end);
  unsynced_bytes_ += end - from;
  const format::ImageTail tail{.branch_id = head.branch_id,
                               .sequence = head.sequence,
                               .time_ns = head.time_ns,
                               .begin_bytes = begin,
                               .end_bytes = end,
                               .content_checksum = base::checksum64(content),
                               .boot = boot};
  tail_->pwrite(format::encode_image_tail(tail, store_.superblock().store_id), 0);
  tail_end_bytes_ = end;
  with_tail_ = file_->identity();
  return true;
}

bool ImageFile::is_asked_for() const { return tail_ != nullptr && AskForBranch::is_asked(*tail_); }

// If the tail was cut off again, the head may still be the recorded one.
void ImageFile::forget_tail() {
  if (tail_end_bytes_ == 0) return;
  tail_end_bytes_ = 0;
  if (tail_ != nullptr) tail_->pwrite(std::array<std::byte, format::kImageTailBytes>{}, 0);
}

void ImageFile::note_adoption_committed() {
  if (!state_.adopting) return;
  auto state = state_;
  state.adopting = false;
  publish(std::move(state), file_->identity());
}

void ImageFile::close(const format::Version& head) {
  if (head.file_bytes.has_value())
    set_size(*head.file_bytes);  // a commit's attempt may have failed
  sync();
  base::FileIdentity identity = file_->identity();
  wait_until_past(identity.changed_ns);
  // The program had closed the file, and another one has written it since: the next opening adopts
  // that.
  if (with_tail_ && (with_tail_->size_bytes != identity.size_bytes ||
                     with_tail_->modified_ns != identity.modified_ns))
    identity = *with_tail_;
  auto state = state_;
  state.in_use = state.all_touched = state.adopting = false;
  state.sequence = head.sequence;
  state.time_ns = head.time_ns;
  publish(std::move(state), identity);
}

}  // namespace vellum::store
