// preload/lmdb_meta.hpp: LMDB's two meta pages, which name the valid transactions (mdb.c,
// MDB_meta).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/lmdb_format.hpp"

namespace vellum::preload {

class LmdbMeta {
 public:
  LmdbMeta() = default;  // not an LMDB file
  LmdbMeta(const std::byte* file, std::uint64_t file_bytes) noexcept;
  bool is_lmdb() const noexcept { return is_lmdb_; }
  friend bool operator==(const LmdbMeta&, const LmdbMeta&) = default;

 private:
  bool is_lmdb_ = false;
  std::array<std::byte, 2 * base::lmdb::kMetaBytes> metas_{};
};

}  // namespace vellum::preload
