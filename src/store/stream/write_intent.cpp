#include "store/stream/write_intent.hpp"

#include <algorithm>
#include <cassert>

namespace vellum::store {

using format::kTouchedSectorBytes;
using format::kWriteIntentBitsPerSector;
using format::PageNumber;

namespace {

constexpr std::uint64_t kMaxSectors =
    format::kMaxRegionBytes / format::kWriteIntentRangeBytes / kWriteIntentBitsPerSector + 1;

std::size_t sector_of(PageNumber page) noexcept {
  return page / kWriteIntentRangePages / kWriteIntentBitsPerSector;
}

}  // namespace

WriteIntent::WriteIntent(std::unique_ptr<base::File> file, const format::Uuid& store_id,
                         std::uint64_t branch_id)
    : file_(std::move(file)), store_id_(store_id), branch_id_(branch_id) {
  const std::uint64_t count = std::min(file_->size_bytes() / kTouchedSectorBytes, kMaxSectors);
  sectors_.resize(count);
  credible_.resize(count);
  changed_.resize(count);
  std::vector<std::byte> bytes(kTouchedSectorBytes);
  for (std::size_t i = 0; i < count; ++i) {
    file_->pread(bytes, i * kTouchedSectorBytes);
    credible_[i] = format::decode_touched_sector(bytes, store_id_, branch_id_, i, sectors_[i]);
  }
}

bool WriteIntent::touched(PageNumber page) const noexcept {
  const std::size_t sector = sector_of(page);
  if (sector >= sectors_.size() || !credible_[sector]) return true;
  const std::uint64_t range = page / kWriteIntentRangePages % kWriteIntentBitsPerSector;
  return (sectors_[sector][range / 64] >> (range % 64) & 1) != 0;
}

void WriteIntent::reset(PageNumber pages) {
  const std::size_t count = std::max<std::size_t>(pages == 0 ? 1 : sector_of(pages - 1) + 1, 1);
  sectors_.assign(count, {});
  credible_.assign(count, true);
  changed_.assign(count, true);
  write_changed();
}

void WriteIntent::forget() {
  for (std::size_t i = 0; i < sectors_.size(); ++i) {
    sectors_[i] = {};
    credible_[i] = true;
    write(i);
  }
}

void WriteIntent::touch(std::span<const PageNumber> pages) {
  assert(std::is_sorted(pages.begin(), pages.end()));
  PageNumber done = UINT64_MAX;  // the range of the previous page
  for (const PageNumber page : pages) {
    if (page / kWriteIntentRangePages == done) continue;
    done = page / kWriteIntentRangePages;
    touch_in_memory(page);
  }
  write_changed();
}

void WriteIntent::touch_in_memory(PageNumber page) {
  assert(page < format::pages_in(format::kMaxRegionBytes));
  const std::size_t sector = sector_of(page);
  if (sector >= sectors_.size()) {
    sectors_.resize(sector + 1);
    credible_.resize(sector + 1, true);
    changed_.resize(sector + 1, true);
  }
  const std::uint64_t range = page / kWriteIntentRangePages % kWriteIntentBitsPerSector;
  std::uint64_t& word = sectors_[sector][range / 64];
  const std::uint64_t bit = 1ULL << (range % 64);
  if ((word & bit) == 0) changed_[sector] = true;
  word |= bit;
}

void WriteIntent::write(std::size_t sector) {
  assert(sector < sectors_.size());
  file_->pwrite(format::encode_touched_sector(sectors_[sector], store_id_, branch_id_, sector),
                sector * kTouchedSectorBytes);
}

void WriteIntent::write_changed() {
  assert(changed_.size() == sectors_.size() && credible_.size() == sectors_.size());
  if (std::find(changed_.begin(), changed_.end(), true) == changed_.end()) return;
  for (std::size_t i = 0; i < sectors_.size(); ++i) {
    if (changed_[i]) write(i);
  }
  file_->sync_data();
  std::fill(changed_.begin(), changed_.end(), false);
}

}  // namespace vellum::store
