// base/lmdb_format.hpp: what of the files of LMDB 0.9 has to be known to tell them from others (its
// mdb.c: MDB_page, MDB_meta, MDB_txninfo; of 64 bits, little-endian).
#pragma once

#include <cstddef>
#include <cstdint>

namespace vellum::base::lmdb {

inline constexpr std::uint32_t kMagic = 0xbeefc0de;  // of a meta, and where a lock file begins
inline constexpr std::uint32_t kVersion = 1;
// A meta page: the first two of a file.
inline constexpr std::size_t kHeaderBytes = 16, kMetaBytes = 136;
inline constexpr std::size_t kMagicAt = 16, kVersionAt = 20, kPageBytesAt = 40;

}  // namespace vellum::base::lmdb
