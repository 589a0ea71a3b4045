// interfaces/lmdb/format.hpp: the formats of LMDB's files: magic numbers and places (mdb.c:
// MDB_page, MDB_meta, MDB_txninfo; 64 bits, little-endian).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace vellum::base {
class File;
}

namespace vellum::lmdb {

inline constexpr std::uint32_t kMagic = 0xbeefc0de;  // of a meta page; starts a lock file

// The formats of data files. LMDB 1.0 cannot read files of 0.9, nor 0.9 those of 1.0.
enum class DataFormat : std::uint8_t { v0_9, v1_0 };

// A meta page is one of the first two pages of a file: a page header, and MDB_meta.
constexpr std::size_t header_bytes(DataFormat format) noexcept {
  return format == DataFormat::v0_9 ? 16 : 24;
}
inline constexpr std::uint32_t kVersionMask = 0xffff;
// The versions of a format differ in what is on other pages: 2 is that of lmdb-js and of LMDB's branch
// mdb.master3, and 3, which aligns keys and data, that of LMDB 1.0.0.
constexpr bool has_version(DataFormat format, std::uint32_t version) noexcept {
  version &= kVersionMask;
  return format == DataFormat::v0_9 ? version == 1 : version == 2 || version == 3;
}
// Places in MDB_meta.
inline constexpr std::size_t kMagicAt = 0, kVersionAt = 4, kMapBytesAt = 16, kPageBytesAt = 24,
                             kFlagsAt = 28, kLastPageAt = 120, kTransactionAt = 128,
                             kMetaBytes = 136;
// lmdb-js's MDB_OVERLAPPINGSYNC: the transaction may not be durable.
inline constexpr std::uint16_t kNotSyncedFlag = 0x1000;
inline constexpr std::uint32_t kMinPageBytes = 256, kMaxPageBytes = 65536;

// The format of a file that begins like LMDB's data; none: it does not. Errc::corrupted: it does,
// but cannot be valid. Errc::unsupported: a later version than 1.0's. LMDB 0.9's library reports
// other versions of its own format.
std::optional<DataFormat> data_format(const base::File& file);

}  // namespace vellum::lmdb
