#include "store/salvage_scan.hpp"

#include <algorithm>
#include <map>

#include "format/record.hpp"
#include "format/version.hpp"
#include "store/record_io.hpp"
#include "store/store_core.hpp"

namespace vellum::store {

using format::RecordHeader;
using format::Version;

namespace {

// Goes through a file in steps of a record's alignment, a buffer at a time.
class Scanner {
 public:
  Scanner(const base::File& file, std::uint64_t pack, std::uint64_t seed)
      : file_(file), pack_(pack), seed_(seed), end_(file.size_bytes()) {}

  // The next record that checks out whole; false: the end.
  bool next(RecordHeader& header) {
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

 private:
  static constexpr std::size_t kBufferBytes = 1u << 20;

  std::span<const std::byte> bytes_at(std::uint64_t at, std::size_t n) const {
    return std::span(buffer_).subspan(static_cast<std::size_t>(at - buffer_start_), n);
  }
  bool load(std::uint64_t at, std::uint64_t n) {
    if (at >= buffer_start_ && at + n <= buffer_start_ + buffer_.size()) return true;
    if (n > end_ - at) return false;
    buffer_.resize(static_cast<std::size_t>(
        std::min<std::uint64_t>(std::max<std::uint64_t>(n, kBufferBytes), end_ - at)));
    buffer_start_ = at;
    return file_.try_pread(buffer_, at) == 0;
  }
  bool whole(const RecordHeader& h) {
    const std::uint64_t extent = format::record_extent_bytes(h);
    if (extent > end_ - h.offset_bytes || !load(h.offset_bytes, extent)) return false;
    const auto bytes = bytes_at(h.offset_bytes, static_cast<std::size_t>(extent));
    return format::verify_record(bytes, h, {pack_, h.offset_bytes, h.tag()}, seed_) == nullptr;
  }

  const base::File& file_;
  std::uint64_t pack_, seed_, end_;
  std::uint64_t at_ = format::kPackHeaderBytes;
  std::uint64_t buffer_start_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace

std::vector<Version> scan_version_records(StoreCore& store) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, Version> found;
  for (const std::uint64_t pack : store.packs().list()) {
    try {
      // Not through the PackSet: a pack with a damaged header still has records.
      const auto file = store.fs().open(store.packs().path_of(pack), base::OpenMode::read_only);
      Scanner scanner(*file, pack, store.checksum_seed());
      for (RecordHeader h; scanner.next(h);) {
        if (h.type != format::RecordType::version) continue;
        const auto record =
            load_record(store, {pack, h.offset_bytes, h.tag()}, format::RecordType::version);
        Version v;
        if (format::decode_version(record.raw, v)) found[{v.branch_id, v.sequence}] = std::move(v);
      }
    } catch (const Error&) {
      continue;  // a link, a directory, or an unreadable file; or the pack cannot serve anyone
    }
  }
  std::vector<Version> out;
  for (auto& [key, version] : found) out.push_back(std::move(version));
  return out;
}

}  // namespace vellum::store
