#include "interfaces/lmdb/meta.hpp"

#include <cstring>

namespace vellum::lmdb {
namespace {

std::uint32_t word(const std::byte* at) noexcept {
  std::uint32_t out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

}  // namespace

MetaPages::MetaPages(const std::byte* file, std::uint64_t file_bytes) noexcept {
  if (file_bytes < kHeaderBytes + kMetaBytes) return;
  if (word(file + kMagicAt) != kMagic || word(file + kVersionAt) != kVersion) return;
  const std::uint32_t page_bytes = word(file + kPageBytesAt);
  if (page_bytes < kHeaderBytes + kMetaBytes || file_bytes < 2ULL * page_bytes) return;
  is_lmdb_ = true;
  std::memcpy(metas_.data(), file + kHeaderBytes, kMetaBytes);
  std::memcpy(metas_.data() + kMetaBytes, file + page_bytes + kHeaderBytes, kMetaBytes);
}

}  // namespace vellum::lmdb
