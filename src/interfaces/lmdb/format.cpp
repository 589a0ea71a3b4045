#include "interfaces/lmdb/format.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/files/file.hpp"

namespace vellum::lmdb {
namespace {

struct Meta {
  std::uint32_t magic = 0, version = 0, page_bytes = 0;
};

// All zero if the file ends before it.
Meta read_meta(const base::File& file, DataFormat format, std::uint64_t at) {
  std::array<std::byte, kPageBytesAt + sizeof(std::uint32_t)> bytes{};
  Meta meta;
  if (file.try_pread(bytes, at + header_bytes(format)) != 0) return meta;
  std::memcpy(&meta.magic, bytes.data() + kMagicAt, sizeof meta.magic);
  std::memcpy(&meta.version, bytes.data() + kVersionAt, sizeof meta.version);
  std::memcpy(&meta.page_bytes, bytes.data() + kPageBytesAt, sizeof meta.page_bytes);
  return meta;
}

}  // namespace

// liblmdb divides by the page size, and reads the second meta page at that offset.
std::optional<DataFormat> data_format(const base::File& file) {
  for (const DataFormat format : {DataFormat::v0_9, DataFormat::v1_0}) {
    const Meta first = read_meta(file, format, 0);
    if (first.magic != kMagic) continue;
    const bool sound = std::has_single_bit(first.page_bytes) && first.page_bytes >= kMinPageBytes &&
                       first.page_bytes <= kMaxPageBytes;
    const Meta second = sound ? read_meta(file, format, first.page_bytes) : Meta{};
    if (second.magic != kMagic || second.page_bytes != first.page_bytes) {
      fail(Errc::corrupted, "{}: starts like an LMDB file, but is no valid one", file.path());
    }
    if (format == DataFormat::v1_0 && !has_version(format, first.version)) {
      fail(Errc::unsupported,
           "{}: LMDB's data version {}; stop the writer, and take the file as it is with --stopped",
           file.path(), first.version & kVersionMask);
    }
    return format;
  }
  return std::nullopt;
}

}  // namespace vellum::lmdb
