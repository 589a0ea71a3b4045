#include "store/gc/pack_mover.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include "base/bytes/checksum.hpp"
#include "base/fail.hpp"
#include "base/memory/zeros.hpp"
#include "store/packs/pack_places.hpp"

namespace vellum::store {

namespace {

constexpr std::string_view kCopySuffix = ".copy";
constexpr std::size_t kBufferBytes = 1u << 20;
constexpr std::size_t kHole = 4096;
static_assert(kBufferBytes % kHole == 0);

// Reads the whole file in buffers and passes each to `take`. Returns the file's checksum.
template <typename Take>
std::uint64_t read_through(const base::File& file, const Take& take) {
  const std::uint64_t size = file.size_bytes();
  std::vector<std::byte> buffer(kBufferBytes);
  std::uint64_t sum = size;
  for (std::uint64_t at = 0; at < size;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kBufferBytes, size - at));
    const auto bytes = std::span(buffer).first(n);
    file.pread(bytes, at);
    sum = base::checksum64(bytes, sum);
    take(std::span<const std::byte>(bytes), at);
    at += n;
  }
  return sum;
}

// Writes `bytes` without their zero blocks.
void write_with_holes(base::File& to, std::span<const std::byte> bytes, std::uint64_t at) {
  assert(at % kHole == 0);
  std::size_t from = 0;  // start of the bytes not yet written
  for (std::size_t i = 0; i < bytes.size(); i += kHole) {
    const auto block = bytes.subspan(i, std::min(kHole, bytes.size() - i));
    if (!base::is_zero(block)) continue;
    if (from < i) to.pwrite(bytes.subspan(from, i - from), at + from);
    from = i + block.size();
  }
  if (from < bytes.size()) to.pwrite(bytes.subspan(from), at + from);
}

}  // namespace

std::string copy_file_name(std::uint64_t pack) {
  return pack_file_name(pack) + std::string(kCopySuffix);
}

bool is_copy_file_name(const std::string& name) {
  std::uint64_t pack = 0;
  return name.ends_with(kCopySuffix) &&
         parse_pack_file_name(name.substr(0, name.size() - kCopySuffix.size()), pack);
}

void copy_pack_file(base::Fs& fs, const base::File& from, const std::string& to,
                    const CopyProgress& progress) {
  const auto file = fs.open(to, base::OpenMode::create_new);
  try {
    const std::uint64_t sum =
        read_through(from, [&](std::span<const std::byte> bytes, std::uint64_t at) {
          write_with_holes(*file, bytes, at);
          if (progress) progress(at + bytes.size());
        });
    file->truncate(from.size_bytes());  // the file may end with a hole
    file->sync_data();
    if (read_through(*file, [](std::span<const std::byte>, std::uint64_t) {}) != sum) {
      fail(Errc::io, "{}: the copy of {} does not read back", to, from.path());
    }
  } catch (...) {
    base::unlink_quietly(fs, to);
    throw;
  }
}

}  // namespace vellum::store
