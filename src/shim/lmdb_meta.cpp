#include "shim/lmdb_meta.hpp"

#include <cstring>

namespace vellum::shim {
namespace {

constexpr std::uint32_t kMagic = 0xbeefc0de, kVersion = 1;  // of the files that LMDB 0.9 makes
// In a meta page.
constexpr std::size_t kMagicAt = 16, kVersionAt = 20, kPageBytesAt = 40;

std::uint32_t word(const std::byte* at) noexcept {
  std::uint32_t out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

}  // namespace

LmdbMeta::LmdbMeta(const std::byte* file, std::uint64_t file_bytes) noexcept {
  if (file_bytes < kHeaderBytes + kMetaBytes) return;
  if (word(file + kMagicAt) != kMagic || word(file + kVersionAt) != kVersion) return;
  const std::uint32_t page_bytes = word(file + kPageBytesAt);
  if (page_bytes < kHeaderBytes + kMetaBytes || file_bytes < 2ULL * page_bytes) return;
  is_lmdb_ = true;
  std::memcpy(metas_.data(), file + kHeaderBytes, kMetaBytes);
  std::memcpy(metas_.data() + kMetaBytes, file + page_bytes + kHeaderBytes, kMetaBytes);
}

}  // namespace vellum::shim
