#include "interfaces/lmdb/transaction_content.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::lmdb {
namespace {

constexpr int kMaxTries = 10'000;
constexpr std::size_t kHeader = header_bytes(DataFormat::v1_0);

template <typename T>
T value_at(const std::byte* meta, std::size_t at) noexcept {
  T out;
  std::memcpy(&out, meta + at, sizeof out);
  return out;
}
std::uint64_t transaction_of(const std::byte* meta) noexcept {
  return value_at<std::uint64_t>(meta, kTransactionAt);
}

std::uint32_t page_bytes_of(const base::File& file) {
  std::uint32_t out = 0;
  file.pread(std::as_writable_bytes(std::span(&out, 1)), kHeader + kPageBytesAt);
  if (!std::has_single_bit(out) || out < kMinPageBytes || out > kMaxPageBytes) {
    fail(Errc::corrupted, "{}: pages of {} bytes", file.path(), out);
  }
  return out;
}

}  // namespace

std::unique_ptr<TransactionContent> TransactionContent::open(const base::File& file,
                                                             const std::string& lock_file) {
  auto slot = ReaderSlot::join(lock_file);
  return slot == nullptr ? nullptr : std::make_unique<TransactionContent>(file, std::move(slot));
}

TransactionContent::TransactionContent(const base::File& file, std::unique_ptr<ReaderSlot> slot)
    : file_(file), slot_(std::move(slot)) {
  const std::uint32_t page_bytes = page_bytes_of(file);
  for (int tries = 0; !read_metas(page_bytes); ++tries) {
    if (tries == kMaxTries)
      fail(Errc::busy, "{}: its meta pages never match its lock file", file.path());
  }
  const std::byte* const meta = metas_.data() + transaction_ % 2 * page_bytes + kHeader;
  const auto last_page = value_at<std::uint64_t>(meta, kLastPageAt);
  if (last_page >= UINT64_MAX / kMaxPageBytes) {
    fail(Errc::corrupted, "{}: {} pages", file.path(), last_page);
  }
  pages_.emplace(file_);
  size_bytes_ = std::min((last_page + 1) * page_bytes, pages_->size_bytes());
  hide_others(page_bytes);
}

// The next transaction but one replaces the meta page in place. It begins after the next one is in
// the lock file.
bool TransactionContent::read_metas(std::uint32_t page_bytes) {
  transaction_ = slot_->renew();
  metas_.resize(2 * std::size_t{page_bytes});
  file_.pread(metas_, 0);
  return slot_->last_transaction() == transaction_ &&
         transaction_of(metas_.data() + transaction_ % 2 * page_bytes + kHeader) == transaction_;
}

// The other meta page, which a transaction may be writing, becomes this one, as its own predecessor.
void TransactionContent::hide_others(std::uint32_t page_bytes) {
  std::byte* const meta = metas_.data() + transaction_ % 2 * page_bytes + kHeader;
  std::byte* const other = metas_.data() + (transaction_ + 1) % 2 * page_bytes + kHeader;
  if (slot_->is_of_lmdb_js()) {
    const auto flags = static_cast<std::uint16_t>(value_at<std::uint16_t>(meta, kFlagsAt) &
                                                  ~unsigned{kNotSyncedFlag});
    std::memcpy(meta + kFlagsAt, &flags, sizeof flags);
    std::byte* const synced = metas_.data() + page_bytes / 2 + kHeader;
    if (page_bytes / 2 >= kHeader + kMetaBytes && transaction_of(synced) != 0)
      std::memcpy(synced + kMapBytesAt, meta + kMapBytesAt, kMetaBytes - kMapBytesAt);
  }
  std::memcpy(other, meta, kMetaBytes);
  const std::uint64_t before = transaction_ - std::min<std::uint64_t>(transaction_, 1);
  std::memcpy(other + kTransactionAt, &before, sizeof before);
}

store::ContentRange TransactionContent::next(std::span<std::byte> room) {
  store::ContentRange range = pages_->next(room);
  const std::uint64_t end = (size_bytes_ + format::kPageBytes - 1) / format::kPageBytes;
  assert(!range.is_read);
  if (range.first >= end) return {};
  range.pages = std::min<std::size_t>(range.pages, end - range.first);
  return range;
}

void TransactionContent::read(format::PageNumber first, std::span<std::byte> out) const {
  pages_->read(first, out);
  const std::uint64_t from = first * format::kPageBytes;
  if (from < metas_.size()) {
    const std::size_t bytes = std::min<std::size_t>(out.size(), metas_.size() - from);
    std::memcpy(out.data(), metas_.data() + from, bytes);
  }
  if (from + out.size() > size_bytes_) {
    const std::size_t inside =
        size_bytes_ > from ? static_cast<std::size_t>(size_bytes_ - from) : 0;
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(inside), out.end(), std::byte{0});
  }
}

void TransactionContent::check() const {
  pages_->check();
  if (slot_->is_held()) return;
  fail(Errc::busy, "{}: LMDB has taken this reader for dead; nothing was kept, try again",
       file_.path());
}

std::uint64_t TransactionContent::position_bytes() const {
  return std::min(pages_->position_bytes(), size_bytes_);
}

}  // namespace vellum::lmdb
