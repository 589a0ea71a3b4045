// interfaces/privateer/settings.cpp: Privateer's environment variables, read on use.
#include "interfaces/privateer/settings.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <vellum/error.hpp>

#include "base/environment.hpp"
#include "base/fail.hpp"
#include "base/parse_number.hpp"
#include "base/round_up.hpp"
#include "format/wire/types.hpp"

namespace vellum::privateer {
namespace {

using format::kMaxRegionBytes;
using format::kPageBytes;

constexpr const char* kBlockSize = "PRIVATEER_BLOCK_SIZE";
constexpr const char* kNumBlocks = "PRIVATEER_NUM_BLOCKS";
constexpr const char* kMaxMemBlocks = "PRIVATEER_MAX_MEM_BLOCKS";
constexpr const char* kStashSeparator = "<stash>";
// With less, the 64 KiB chunks of a commit's pages do not fit.
constexpr std::uint64_t kMinMemoryBytes = 16u << 20;

[[noreturn]] void refuse(const char* variable, const std::string& why) {
  fail(Errc::invalid_argument, "{}={}: {}", variable, std::getenv(variable), why);
}

// Returns 0 for an unset variable. The original treats 0 as unset, too.
std::uint64_t number_in(const char* variable) {
  const auto text = base::environment(variable);
  if (!text.has_value()) return 0;
  const auto number = base::parse_number<std::uint64_t>(*text);
  if (!number.has_value()) refuse(variable, "is not a whole number");
  return *number;
}

std::uint64_t block_size_variable() {
  const std::uint64_t bytes = number_in(kBlockSize);
  if (bytes % kPageBytes != 0 || bytes > kMaxRegionBytes) {
    refuse(kBlockSize, "must be a multiple of 4096, at most 64 TiB");
  }
  return bytes;
}

}  // namespace

StashAndBase split_stash(const std::string& path) {
  const auto at = path.find(kStashSeparator);
  if (at == std::string::npos) return {"", path};
  return {path.substr(0, at), path.substr(at + std::strlen(kStashSeparator))};
}

std::uint64_t block_bytes_at_start() {
  const std::uint64_t bytes = block_size_variable();
  return bytes != 0 ? bytes : kDefaultBlockBytes;
}

std::uint64_t block_bytes_for(std::uint64_t capacity_bytes) {
  if (const std::uint64_t bytes = block_size_variable(); bytes != 0) return bytes;
  const std::uint64_t blocks = number_in(kNumBlocks);
  if (blocks == 0) return kDefaultBlockBytes;
  // Whole pages without rounding: a caller may have reserved no more than the capacity.
  if (capacity_bytes % blocks != 0 || capacity_bytes / blocks % kPageBytes != 0) {
    refuse(kNumBlocks, "does not divide a capacity of " + std::to_string(capacity_bytes) +
                           " bytes into blocks of a multiple of 4096");
  }
  return capacity_bytes / blocks;
}

std::uint64_t whole_blocks(std::uint64_t bytes, std::uint64_t block_bytes) {
  if (bytes == 0 || bytes > kMaxRegionBytes) {
    fail(Errc::invalid_argument, "a region of {} bytes is not possible: give 1 to {} (64 TiB)",
         bytes, kMaxRegionBytes);
  }
  assert(block_bytes != 0);
  const std::uint64_t rounded = base::round_up(bytes, block_bytes);
  if (rounded > kMaxRegionBytes) {
    fail(Errc::invalid_argument, "{} bytes in whole blocks of {} are more than 64 TiB", bytes,
         block_bytes);
  }
  return rounded;
}

std::uint64_t memory_limit_bytes(std::uint64_t block_bytes) {
  const std::uint64_t blocks = number_in(kMaxMemBlocks);
  if (blocks == 0) return 0;
  assert(block_bytes != 0);
  if (blocks > kMaxRegionBytes / block_bytes) return kMaxRegionBytes;
  return std::max(blocks * block_bytes, kMinMemoryBytes);
}

}  // namespace vellum::privateer
