#include "store/gc/pack_copy.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/bytes/checksum.hpp"
#include "base/fail.hpp"
#include "base/memory/zeros.hpp"
#include "store/packs/pack_places.hpp"

namespace vellum::store {

namespace {

constexpr std::string_view kCopySuffix = ".copy";
constexpr std::size_t kAtOnce = 1u << 20;
constexpr std::size_t kHole = 4096;

// Reads all of a file, piece by piece; returns its checksum.
template <typename Take>
std::uint64_t read_through(const base::File& file, const Take& take) {
  const std::uint64_t size = file.size_bytes();
  std::vector<std::byte> buffer(kAtOnce);
  std::uint64_t sum = size;
  for (std::uint64_t at = 0; at < size;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kAtOnce, size - at));
    const auto piece = std::span(buffer).first(n);
    file.pread(piece, at);
    sum = base::checksum64(piece, sum);
    take(std::span<const std::byte>(piece), at);
    at += n;
  }
  return sum;
}

void write_stretches(base::File& to, std::span<const std::byte> piece, std::uint64_t at) {
  std::size_t from = 0;  // start of the stretch to be written
  for (std::size_t i = 0; i < piece.size(); i += kHole) {
    const auto block = piece.subspan(i, std::min(kHole, piece.size() - i));
    if (!base::is_zero(block)) continue;
    if (from < i) to.pwrite(piece.subspan(from, i - from), at + from);
    from = i + block.size();
  }
  if (from < piece.size()) to.pwrite(piece.subspan(from), at + from);
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
        read_through(from, [&](std::span<const std::byte> piece, std::uint64_t at) {
          write_stretches(*file, piece, at);
          if (progress) progress(at + piece.size());
        });
    file->truncate(from.size_bytes());  // in case it ends with a hole
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
