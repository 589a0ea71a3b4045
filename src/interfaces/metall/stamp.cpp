// interfaces/metall/stamp.cpp: see stamp.hpp.
#include "interfaces/metall/stamp.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <string>

#include "base/boot_id.hpp"
#include "base/clock.hpp"
#include "base/files/new_file.hpp"

namespace vellum::datastore {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxStampBytes = 512;

std::string stamp_file(const DatastorePlace& place) { return place.directory + "/closed"; }

std::string stamp_text(const VersionInfo& version, Lasting lasting) {
  std::string text = fmt::format("{} {} {}\n", version.sequence,
                                 base::nanoseconds_of(version.committed_at), version.name);
  if (lasting == Lasting::this_boot) text += fmt::format("boot {}\n", base::boot_id());
  return text;
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

// A process killed during this leaves no partial stamp.
void write_unflushed(const DatastorePlace& place, std::span<const std::byte> bytes) {
  base::NewFile made(base::posix_fs(), stamp_file(place));
  made.file().pwrite(bytes, 0);
  made.replace_unsynced(stamp_file(place));
}

}  // namespace

bool is_stamped(const DatastorePlace& place, const VersionInfo& version) {
  auto& files = base::posix_fs();
  if (!files.exists(stamp_file(place))) return false;
  const auto bytes = base::read_whole(files, stamp_file(place), kMaxStampBytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text == stamp_text(version, Lasting::for_ever) ||
         (!base::boot_id().empty() && text == stamp_text(version, Lasting::this_boot));
}

void stamp(const DatastorePlace& place, const VersionInfo& version, Lasting lasting) noexcept {
  try {
    const std::string text = stamp_text(version, lasting);
    const auto bytes = std::as_bytes(std::span(text));
    if (lasting == Lasting::this_boot) {
      write_unflushed(place, bytes);
      return;
    }
    flush_files(place.files());
    base::NewFile made(base::posix_fs(), stamp_file(place));
    made.file().pwrite(bytes, 0);
    made.replace();
  } catch (const std::exception&) {  // read-only medium, full disk: the files are then restored
  }
}

void remove_stamp(const DatastorePlace& place) {
  auto& files = base::posix_fs();
  if (!files.exists(stamp_file(place))) return;
  files.unlink(stamp_file(place));
  files.sync_directory(place.directory);
}

}  // namespace vellum::datastore
