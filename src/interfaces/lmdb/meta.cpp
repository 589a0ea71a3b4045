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
  for (const DataFormat format : {DataFormat::v0_9, DataFormat::v1_0}) {
    const std::size_t header = header_bytes(format);
    if (file_bytes < header + kMetaBytes) return;
    const std::byte* const meta = file + header;
    if (word(meta + kMagicAt) != kMagic || !has_version(format, word(meta + kVersionAt))) {
      continue;
    }
    const std::uint32_t page_bytes = word(meta + kPageBytesAt);
    if (page_bytes < header + kMetaBytes || file_bytes < 2ULL * page_bytes) return;
    is_lmdb_ = true;
    std::memcpy(metas_.data(), meta, kMetaBytes);
    std::memcpy(metas_.data() + kMetaBytes, meta + page_bytes, kMetaBytes);
    return;
  }
}

}  // namespace vellum::lmdb
