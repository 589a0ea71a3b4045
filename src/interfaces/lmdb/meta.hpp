// interfaces/lmdb/meta.hpp: LMDB's two meta pages, which name the valid transactions (mdb.c,
// MDB_meta).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "interfaces/lmdb/format.hpp"

namespace vellum::lmdb {

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
