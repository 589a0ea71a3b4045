#include "store/stream/content.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/round_up.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageNumber;

namespace {

// A smaller hole is cheaper to read than to skip.
constexpr std::uint64_t kMinHoleBytes = 64u << 10;

}  // namespace

void FileContent::require_length(std::uint64_t bytes) const {
  if (file_.size_bytes() >= bytes) return;
  fail(Errc::busy, "{}: another process truncated it during the read; nothing was stored",
       file_.path());
}

// An upper bound of the end of the data: small holes count as data.
std::uint64_t FileContent::end_of_data(std::uint64_t data, std::uint64_t end) const {
  assert(data <= end);
  for (std::uint64_t at = data; at < end;) {
    const std::uint64_t hole = file_.next_hole(at);
    if (hole >= end) return end;
    at = file_.next_data(hole);
    if (at == hole) return end;  // the file system does not report holes
    if (at >= end || at - hole >= kMinHoleBytes) return hole;
  }
  return end;
}

ContentRange FileContent::next(std::span<std::byte> room) {
  assert(!room.empty() && room.size() % kPageBytes == 0);
  const std::uint64_t data = at_ < size_bytes_ ? file_.next_data(at_) : size_bytes_;
  if (data >= size_bytes_) {
    at_ = size_bytes_;
    return {};
  }
  const std::uint64_t from = std::max(at_, data / kPageBytes * kPageBytes);
  const std::uint64_t end =
      end_of_data(data, std::min<std::uint64_t>(size_bytes_, from + room.size()));
  at_ = std::min(base::round_up(end, kPageBytes), size_bytes_);
  file_.begin_read(from, at_ - from);
  return {from / kPageBytes, format::pages_in(at_ - from), false};
}

void FileContent::read(PageNumber first, std::span<std::byte> out) const {
  const std::uint64_t from = first * kPageBytes;
  assert(from < size_bytes_);
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size_bytes_ - from));
  try {
    file_.pread(out.first(n), from);
  } catch (const Error&) {
    require_length(from + n);  // the better error
    throw;
  }
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(n), out.end(), std::byte{0});
}

bool FileContent::restart() {
  at_ = 0;
  return true;
}

ContentRange StreamContent::next(std::span<std::byte> room) {
  assert(!room.empty() && room.size() % kPageBytes == 0);
  std::size_t got = 0;
  while (!ended_ && got < room.size()) {
    const std::size_t n = read_(room.data() + got, room.size() - got);
    ended_ = n == 0;
    got += n;
  }
  const ContentRange range{at_ / kPageBytes, format::pages_in(got), true};
  const auto rest = room.first(range.pages * kPageBytes).subspan(got);
  std::fill(rest.begin(), rest.end(), std::byte{0});
  at_ += got;
  return range;
}

void StreamContent::read(PageNumber, std::span<std::byte>) const {
  fail(Errc::invalid_argument, "a stream can be read only once");
}

std::unique_ptr<Content> content_of(const base::File& file) {
  std::byte first{};
  if (file.size_bytes() != 0 || file.read_some({&first, 1}, 0) == 0) {
    return std::make_unique<FileContent>(file);
  }
  return std::make_unique<StreamContent>(
      [&file, at = std::uint64_t{0}](void* to, std::size_t bytes) mutable {
        const std::size_t got = file.read_some({static_cast<std::byte*>(to), bytes}, at);
        at += got;
        return got;
      },
      0);
}

VersionContent::VersionContent(std::shared_ptr<PageSource> source)
    : source_(std::move(source)),
      end_(std::min(source_->region_bytes() / kPageBytes,
                    format::pages_in(source_->file_bytes().value_or(source_->region_bytes())))) {}

ContentRange VersionContent::next(std::span<std::byte> room) {
  assert(room.size() >= kPageBytes);
  if (at_ < end_) at_ += source_->zeros_from(at_, end_ - at_);
  if (at_ >= end_) {
    at_ = end_;
    return {};
  }
  const auto most =
      static_cast<std::size_t>(std::min<std::uint64_t>(room.size() / kPageBytes, end_ - at_));
  const ContentRange range{at_, std::max<std::size_t>(data_from(*source_, at_, most), 1), false};
  at_ += range.pages;
  return range;
}

void VersionContent::read(PageNumber first, std::span<std::byte> out) const {
  assert(out.size() % kPageBytes == 0);
  source_->read(first, out.size() / kPageBytes, out.data());
}

bool VersionContent::restart() {
  at_ = 0;
  return true;
}

std::optional<std::uint64_t> VersionContent::file_bytes(
    std::optional<std::uint64_t> head_file_bytes, std::uint64_t region_bytes) const {
  if (source_->file_bytes().has_value()) return source_->file_bytes();
  if (head_file_bytes.value_or(region_bytes) != region_bytes) return size_bytes();
  return head_file_bytes;
}

std::size_t data_from(const PageSource& source, PageNumber page, std::size_t limit) {
  constexpr std::size_t kStepPages = 16;
  std::size_t n = std::min(kStepPages, limit);
  while (n < limit && source.zeros_from(page + n, kStepPages) < kStepPages) n += kStepPages;
  return std::min(n, limit);
}

}  // namespace vellum::store
