// interfaces/lmdb/meta.hpp: LMDB's two meta pages, which name the valid transactions, and the
// magic numbers of LMDB 0.9 files (mdb.c: MDB_page, MDB_meta, MDB_txninfo; 64 bits, little-endian).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace vellum::lmdb {

inline constexpr std::uint32_t kMagic = 0xbeefc0de;  // of a meta page; starts a lock file
inline constexpr std::uint32_t kVersion = 1;
// A meta page: one of the first two of a file.
inline constexpr std::size_t kHeaderBytes = 16, kMetaBytes = 136;
inline constexpr std::size_t kMagicAt = 16, kVersionAt = 20, kPageBytesAt = 40;

class MetaPages {
 public:
  MetaPages() = default;  // not an LMDB file
  MetaPages(const std::byte* file, std::uint64_t file_bytes) noexcept;
  bool is_lmdb() const noexcept { return is_lmdb_; }
  friend bool operator==(const MetaPages&, const MetaPages&) = default;

 private:
  bool is_lmdb_ = false;
  std::array<std::byte, 2 * kMetaBytes> metas_{};
};

}  // namespace vellum::lmdb
