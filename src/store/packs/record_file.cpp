#include "store/packs/record_file.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "base/bytes/codec.hpp"
#include "base/bytes/sha256.hpp"
#include "base/fail.hpp"

namespace vellum::store {

namespace {

LoadedRecord read_at(const base::File& file, const format::RecordRef& place,
                     const format::RecordSeal& seal,
                     const std::function<bool(format::RecordType)>& is_wanted) {
  const auto corrupted = [&](const char* reason) {
    fail(Errc::corrupted, "{} at byte {}: {}", file.path(), place.offset_bytes, reason);
  };

  const std::uint64_t file_bytes = file.size_bytes();
  if (place.offset_bytes > file_bytes ||
      file_bytes - place.offset_bytes < format::kRecordHeaderBytes) {
    corrupted("the record begins past the end of the file (truncated)");
  }
  std::array<std::byte, format::kRecordHeaderBytes> header_bytes;
  file.pread(header_bytes, place.offset_bytes);
  LoadedRecord out;
  if (const char* problem = format::decode_record_header(header_bytes, out.header))
    corrupted(problem);
  if (const char* problem = format::check_sealed(out.header, seal)) corrupted(problem);
  if (!is_wanted(out.header.type)) corrupted("the record is of another type");
  const std::uint64_t extent = format::record_extent_bytes(out.header);
  if (extent > file_bytes - place.offset_bytes) {
    corrupted("the record ends past the end of the file (truncated)");
  }

  out.bytes.resize(static_cast<std::size_t>(extent));
  file.pread(out.bytes, place.offset_bytes);
  if (const char* problem = format::open_record(out.bytes, out.header, place, seal)) {
    corrupted(problem);
  }
  if (out.header.type == format::RecordType::based_pages) return out;
  const auto stored = out.stored();
  out.raw.resize(out.header.raw_bytes);
  if (out.header.codec == base::Compression::none) {
    if (stored.size() != out.raw.size()) corrupted("the record's sizes do not match");
    std::copy(stored.begin(), stored.end(), out.raw.begin());
  } else if (!base::Decompressor(out.raw.size()).decompress(out.header.codec, stored, out.raw)) {
    corrupted("the record does not decompress");
  }
  if (!has_its_hash(out)) corrupted(kNotItsHash);
  return out;
}

}  // namespace

LoadedRecord read_record_at(const base::File& file, const format::RecordRef& place,
                            format::RecordType type, const format::RecordSeal& seal) {
  return read_at(file, place, seal, [type](format::RecordType found) { return found == type; });
}

LoadedRecord read_pages_at(const base::File& file, const format::RecordRef& place,
                           const format::RecordSeal& seal) {
  return read_at(file, place, seal, format::holds_pages);
}

bool has_its_hash(const LoadedRecord& record) {
  if (!record.header.has_hash) return true;
  const auto hash = format::record_hash(record.bytes, record.header);
  return std::ranges::equal(base::sha256(record.raw), hash);
}

}  // namespace vellum::store
