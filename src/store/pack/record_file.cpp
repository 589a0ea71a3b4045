#include "store/pack/record_file.hpp"

#include <algorithm>
#include <array>

#include "base/codec.hpp"
#include "base/fail.hpp"
#include "base/sha256.hpp"

namespace vellum::store {

LoadedRecord read_record_at(const base::File& file, const format::RecordRef& place,
                            format::RecordType type, std::uint64_t seed) {
  const auto corrupted = [&](const char* reason) {
    fail(Errc::corrupted, "{} at byte {}: {}", file.path(), place.offset_bytes, reason);
  };

  const std::uint64_t file_bytes = file.size_bytes();
  if (place.offset_bytes > file_bytes ||
      file_bytes - place.offset_bytes < format::kRecordHeaderBytes) {
    corrupted("the record lies past the end of the file (truncated)");
  }
  std::array<std::byte, format::kRecordHeaderBytes> header_bytes;
  file.pread(header_bytes, place.offset_bytes);
  LoadedRecord out;
  if (const char* problem = format::decode_record_header(header_bytes, out.header))
    corrupted(problem);
  if (out.header.type != type) corrupted("the record is of another type");
  const std::uint64_t extent = format::record_extent_bytes(out.header);
  if (extent > file_bytes - place.offset_bytes) {
    corrupted("the record ends past the end of the file (truncated)");
  }

  out.bytes.resize(static_cast<std::size_t>(extent));
  file.pread(out.bytes, place.offset_bytes);
  if (const char* problem = format::verify_record(out.bytes, out.header, place, seed)) {
    corrupted(problem);
  }
  if (out.header.type == format::RecordType::based_pages) return out;
  const auto stored = out.stored();
  out.raw.resize(out.header.raw_bytes);
  if (out.header.codec == base::Codec::none) {
    if (stored.size() != out.raw.size()) corrupted("the record's sizes do not match");
    std::copy(stored.begin(), stored.end(), out.raw.begin());
  } else if (!base::Decompressor(out.raw.size()).decompress(out.header.codec, stored, out.raw)) {
    corrupted("the record does not decompress");
  }
  if (out.header.has_hash) {
    const auto hash = format::record_hash(out.bytes, out.header);
    if (!std::ranges::equal(base::sha256(out.raw), hash)) {
      corrupted("the content does not have the SHA-256 that it was stored with");
    }
  }
  return out;
}

}  // namespace vellum::store
