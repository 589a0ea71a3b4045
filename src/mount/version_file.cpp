// mount/version_file.cpp: see version_file.hpp.
#include "mount/version_file.hpp"

#include <algorithm>
#include <cstring>

#include "interfaces/metall/files.hpp"

namespace vellum::mount {
namespace {

using format::kPageBytes;

constexpr std::uint64_t kStepPages = 16;

// Whether the step from this page on has no stored data.
bool is_hole(const store::PageSource& source, format::PageNumber page) {
  return source.zeros_from(page, kStepPages) == kStepPages;
}

std::uint64_t next(const store::PageSource& source, const VersionFile& file, std::uint64_t at,
                   bool wants_hole) {
  constexpr std::uint64_t kStepBytes = kStepPages * kPageBytes;
  const std::uint64_t end = file.offset_bytes + file.length_bytes;
  for (std::uint64_t from = file.offset_bytes + at; from < end;) {
    const std::uint64_t step = from / kStepBytes;
    if (is_hole(source, step * kStepPages) == wants_hole) return from - file.offset_bytes;
    from = (step + 1) * kStepBytes;
  }
  return file.length_bytes;
}

}  // namespace

std::vector<VersionFile> files_of(const Versions& versions, const FoundVersion& version) {
  const std::vector<VersionFile> itself{{"", 0, version.file_bytes}};
  if (version.region_bytes <= datastore::kAreaBytes) return itself;
  datastore::PageBytes page;
  datastore::FileIndex index;
  versions.open(version)->read(version.region_bytes / kPageBytes - 1, 1, page.data());
  if (datastore::decode_index(page, index) != nullptr) return itself;
  const std::uint64_t area = version.region_bytes - datastore::kAreaBytes;
  std::vector<VersionFile> out{{"segment", 0, area}};
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i].name.empty()) continue;
    out.push_back(
        {"files/" + index[i].name, area + i * datastore::kFileBytes, index[i].length_bytes});
  }
  return out;
}

void read_version_file(const store::PageSource& source, const VersionFile& file, std::uint64_t at,
                       std::span<std::byte> out) {
  const std::uint64_t from = file.offset_bytes + at;
  const std::uint64_t first = from / kPageBytes, skip = from % kPageBytes;
  if (skip == 0 && out.size() % kPageBytes == 0) {
    return source.read(first, out.size() / kPageBytes, out.data());
  }
  const std::size_t pages = (skip + out.size() + kPageBytes - 1) / kPageBytes;
  std::vector<std::byte> whole(pages * kPageBytes);
  source.read(first, pages, whole.data());
  std::memcpy(out.data(), whole.data() + skip, out.size());
}

std::uint64_t next_data(const store::PageSource& source, const VersionFile& file,
                        std::uint64_t at) {
  return next(source, file, at, false);
}

std::uint64_t next_hole(const store::PageSource& source, const VersionFile& file,
                        std::uint64_t at) {
  return next(source, file, at, true);
}

std::optional<std::uint64_t> data_bytes(const store::PageSource& source, const VersionFile& file) {
  constexpr std::uint64_t kMaxBytes = 4ULL << 30;  // about 0.1 s
  if (file.length_bytes > kMaxBytes) return std::nullopt;
  std::uint64_t bytes = 0;
  for (std::uint64_t at = 0; at < file.length_bytes;) {
    const std::uint64_t data = next_data(source, file, at);
    at = next_hole(source, file, data);
    bytes += at - data;
  }
  return bytes;
}

}  // namespace vellum::mount
