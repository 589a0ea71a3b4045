// datastore/stamp.cpp: see stamp.hpp.
#include "datastore/stamp.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <string>

#include "base/file.hpp"

namespace vellum::datastore {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxStampBytes = 512;

std::string stamp_file(const Place& place) { return place.directory + "/closed"; }

std::string stamp_text(const VersionInfo& version) {
  return fmt::format("{} {} {}\n", version.sequence, version.time_ns, version.name);
}

void flush_files(const std::string& directory) {
  auto& files = base::posix_fs();
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string path = entry.path().string();
    if (entry.is_directory()) files.sync_directory(path);
    if (entry.is_regular_file()) files.open(path, base::OpenMode::read_write)->sync_data();
  }
  files.sync_directory(directory);
}

}  // namespace

bool is_stamped(const Place& place, const VersionInfo& version) {
  auto& files = base::posix_fs();
  if (!files.exists(stamp_file(place))) return false;
  const auto bytes = base::read_whole(files, stamp_file(place), kMaxStampBytes);
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) ==
         stamp_text(version);
}

void stamp(const Place& place, const VersionInfo& version) noexcept {
  try {
    flush_files(place.files());
    const std::string text = stamp_text(version);
    base::publish_file(base::posix_fs(), place.directory, place.directory, "closed",
                       std::as_bytes(std::span(text)), true);
  } catch (const std::exception&) {  // a read-only medium, a full disk: the files are put back then
  }
}

void remove_stamp(const Place& place) {
  auto& files = base::posix_fs();
  if (!files.exists(stamp_file(place))) return;
  files.unlink(stamp_file(place));
  files.sync_directory(place.directory);
}

}  // namespace vellum::datastore
