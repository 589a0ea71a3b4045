// store/packs/pack_scanner.hpp: finds records in a pack without an index, past holes and damage.
#pragma once

#include <cassert>
#include <vector>

#include "base/files/file.hpp"
#include "format/records/record.hpp"

namespace vellum::store {

class PackScanner {
 public:
  // Searches the file from `start` up to `end`. REQUIRES: `start` is aligned like a record. With
  // keys, only records that open with them are found.
  PackScanner(const base::File& file, std::uint64_t pack, const format::RecordSeal& seal,
              std::uint64_t start, std::uint64_t end)
      : file_(file), pack_(pack), seal_(seal), end_(end), at_(start) {
    assert(start % format::kRecordAlignBytes == 0);
  }

  // Finds the next record that passes all checks. False: the end, or a read error.
  bool next(format::RecordHeader& header);
  // Whether a read error hides records.
  bool has_failed() const noexcept { return has_failed_; }

 private:
  static constexpr std::size_t kBufferBytes = 1u << 20;

  std::span<const std::byte> bytes_at(std::uint64_t at, std::size_t n) const {
    assert(at >= buffer_start_ && at - buffer_start_ + n <= buffer_.size());
    return std::span(buffer_).subspan(static_cast<std::size_t>(at - buffer_start_), n);
  }
  bool load(std::uint64_t at, std::uint64_t n);
  bool whole(const format::RecordHeader& h);

  const base::File& file_;
  std::uint64_t pack_;
  format::RecordSeal seal_;
  std::uint64_t end_;
  std::uint64_t at_;
  std::uint64_t buffer_start_ = 0;
  bool has_failed_ = false;
  std::vector<std::byte> buffer_;
};

}  // namespace vellum::store
