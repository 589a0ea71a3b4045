// interfaces/lmdb/format.hpp: magic numbers of LMDB 0.9 files (its mdb.c: MDB_page, MDB_meta,
// MDB_txninfo; 64 bits, little-endian).
#pragma once

#include <cstddef>
#include <cstdint>

namespace vellum::lmdb {

inline constexpr std::uint32_t kMagic = 0xbeefc0de;  // of a meta page; starts a lock file
inline constexpr std::uint32_t kVersion = 1;
// A meta page: one of the first two of a file.
inline constexpr std::size_t kHeaderBytes = 16, kMetaBytes = 136;
inline constexpr std::size_t kMagicAt = 16, kVersionAt = 20, kPageBytesAt = 40;

}  // namespace vellum::lmdb
