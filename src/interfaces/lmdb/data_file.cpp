#include "interfaces/lmdb/lock_file.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "interfaces/lmdb/meta.hpp"

namespace vellum::lmdb {
namespace {

struct Meta {
  std::uint32_t magic = 0, page_bytes = 0;
};

// All zero if the file ends before it.
Meta read_meta(const base::File& file, std::uint64_t at) {
  std::array<std::byte, kPageBytesAt + sizeof(std::uint32_t)> bytes{};
  Meta meta;
  if (file.try_pread(bytes, at) != 0) return meta;
  std::memcpy(&meta.magic, bytes.data() + kMagicAt, sizeof meta.magic);
  std::memcpy(&meta.page_bytes, bytes.data() + kPageBytesAt, sizeof meta.page_bytes);
  return meta;
}

}  // namespace

// liblmdb divides by the page size, and reads the second meta page at that offset.
bool is_data(const base::File& file) {
  const Meta first = read_meta(file, 0);
  if (first.magic != kMagic) return false;
  const bool sound =
      std::has_single_bit(first.page_bytes) && first.page_bytes >= 256 && first.page_bytes <= 65536;
  const Meta second = sound ? read_meta(file, first.page_bytes) : Meta{};
  if (second.magic != kMagic || second.page_bytes != first.page_bytes) {
    fail(Errc::corrupted, "{}: starts like an LMDB file, but is no valid one", file.path());
  }
  return true;
}

}  // namespace vellum::lmdb
