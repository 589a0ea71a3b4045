#include "store/packs/pack_scanner.hpp"

#include <algorithm>
#include <cassert>

namespace vellum::store {

using format::RecordHeader;

// Records are adjacent. Where there is no record, every later offset at which one can start is
// tried.
bool PackScanner::next(RecordHeader& header) {
  while (at_ + format::kRecordHeaderBytes <= end_) {
    const std::uint64_t here = at_;
    if (!load(here, format::kRecordHeaderBytes)) return false;
    if (format::decode_record_header(bytes_at(here, format::kRecordHeaderBytes), header) ==
            nullptr &&
        header.pack == pack_ && header.offset_bytes == here && whole(header)) {
      at_ = here + format::record_extent_bytes(header);
      return true;
    }
    at_ = here + format::kRecordAlignBytes;
  }
  return false;
}

bool PackScanner::load(std::uint64_t at, std::uint64_t n) {
  assert(at <= end_);
  if (at >= buffer_start_ && at + n <= buffer_start_ + buffer_.size()) return true;
  if (n > end_ - at) return false;
  buffer_.resize(static_cast<std::size_t>(
      std::min<std::uint64_t>(std::max<std::uint64_t>(n, kBufferBytes), end_ - at)));
  buffer_start_ = at;
  if (file_.try_pread(buffer_, at) == 0) return true;
  has_failed_ = true;
  buffer_.clear();
  return false;
}

bool PackScanner::whole(const RecordHeader& h) {
  const std::uint64_t extent = format::record_extent_bytes(h);
  if (extent > end_ - h.offset_bytes || !load(h.offset_bytes, extent)) return false;
  const auto bytes = bytes_at(h.offset_bytes, static_cast<std::size_t>(extent));
  const format::RecordRef ref{pack_, h.offset_bytes, h.tag()};
  if (seal_.keys == nullptr) return format::verify_record(bytes, h, ref, seal_.seed) == nullptr;
  std::vector<std::byte> opened(bytes.begin(), bytes.end());
  return format::open_record(opened, h, ref, seal_) == nullptr;
}

}  // namespace vellum::store
