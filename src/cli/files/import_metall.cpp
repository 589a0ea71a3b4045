// cli/files/import_metall.cpp: converts a datastore of plain Metall to one of Vellum.
#include "cli/files/import_metall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <vector>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/memory/zeros.hpp"
#include "cli/files/ingest_file.hpp"
#include "format/wire/types.hpp"

namespace vellum::cli {
namespace {

namespace fs = std::filesystem;

using format::kPageBytes;
constexpr std::size_t kCopyBytes = 1u << 20;
constexpr std::uint64_t kMinCapacityBytes = 1ULL
                                            << 40;  // address space; an opening may request more

// The segment's files, in order. All have the same size.
std::vector<fs::path> blocks_of(const std::string& from, std::uint64_t& block_bytes) {
  const fs::path segment = fs::path(from) / "mds" / "segment";
  std::vector<fs::path> blocks;
  for (;;) {
    const fs::path block = segment / fmt::format("block-{}", blocks.size());
    if (!fs::is_regular_file(block)) break;
    const std::uint64_t size = fs::file_size(block);
    if (blocks.empty()) block_bytes = size;
    if (size != block_bytes || size == 0 || size % kPageBytes != 0) {
      fail(Errc::corrupted, "{}: {} bytes, but block-0 has {}", block.string(), size, block_bytes);
    }
    blocks.push_back(block);
  }
  if (blocks.empty()) {
    fail(Errc::not_found, "{}: not a Metall datastore: {}/block-0 does not exist", from,
         segment.string());
  }
  return blocks;
}

std::uint64_t copy_block(const fs::path& block, std::uint64_t block_bytes, std::byte* to) {
  const auto file = base::posix_fs().open(regular_file(block.string()), base::OpenMode::read_only);
  std::vector<std::byte> buffer(kCopyBytes);
  std::uint64_t copied = 0;
  for (std::uint64_t at = 0; at < block_bytes;) {
    at = std::min(file->next_data(at), block_bytes) / kPageBytes * kPageBytes;
    const std::size_t n = std::min<std::uint64_t>(buffer.size(), block_bytes - at);
    file->pread(std::span(buffer).first(n), at);
    for (std::size_t i = 0; i < n; i += kPageBytes) {
      if (base::is_zero(std::span(buffer).subspan(i, kPageBytes))) continue;
      std::memcpy(to + at + i, buffer.data() + i, kPageBytes);
      copied += kPageBytes;
    }
    at += n;
  }
  return copied;
}

}  // namespace

MetallImport import_metall(const std::string& from, const std::string& to,
                           const std::string& message, const ProgressFn& progress) {
  std::uint64_t block_bytes = 0;
  const auto blocks = blocks_of(from, block_bytes);
  const fs::path root = fs::path(from) / "mds";
  if (!fs::exists(root / "properly_closed_mark")) {
    fail(Errc::corrupted,
         "{}: Metall has not closed this datastore; its segment and its other files may not fit "
         "together",
         from);
  }
  MetallImport result;
  result.segment_bytes = blocks.size() * block_bytes;
  Datastore datastore =
      Datastore::create(to, std::max(kMinCapacityBytes, 2 * result.segment_bytes));
  datastore.extend(result.segment_bytes);
  auto* const segment = static_cast<std::byte*>(datastore.segment());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    result.data_bytes += copy_block(blocks[i], block_bytes, segment + i * block_bytes);
    if (progress) progress({(i + 1) * block_bytes, result.segment_bytes, "bytes"});
  }
  const fs::path metadata = fs::path(Datastore::files_directory(to)) / "management";
  fs::create_directories(metadata);
  for (const auto& entry : fs::directory_iterator(root / "management")) {
    if (!entry.is_regular_file()) continue;
    fs::copy_file(entry.path(), metadata / entry.path().filename(),
                  fs::copy_options::overwrite_existing);
    ++result.metadata_files;
  }
  result.commit = datastore.commit(message);
  return result;
}

}  // namespace vellum::cli
