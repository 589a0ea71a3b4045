#include "group/mpi/datastore_root.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "format/wire/superblock.hpp"
#include "group/record_directory.hpp"

namespace vellum::mpi {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxLinkBytes = 8192;
constexpr std::size_t kMaxVersionNameBytes = 180;
constexpr std::string_view kLinkTitle = "vellum group link";

std::string link_file(const std::string& directory) { return directory + "/link"; }

// Lines: title, path of the group relative to the link's directory, version.
DatastorePlace read_link(const std::string& directory) {
  const auto bytes = base::read_whole(base::posix_fs(), link_file(directory), kMaxLinkBytes);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string_view lines[3];
  for (auto& line : lines) {
    const auto end = std::min(rest.find('\n'), rest.size());
    line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (lines[0] != kLinkTitle || lines[1].empty() ||
      format::name_problem(std::string(lines[2])) != nullptr) {
    fail(Errc::corrupted, "{}: not a link to a version of a group", link_file(directory));
  }
  const fs::path root(lines[1]);
  return {(root.is_absolute() ? root : fs::path(directory) / root).lexically_normal().string(),
          std::string(lines[2]), directory};
}

void require_partitions(const group::RecordDirectory& directory, std::uint32_t partitions) {
  const std::uint32_t there = directory.group().partitions;
  if (there == partitions) return;
  fail(Errc::invalid_argument, "{}: the group has {} partitions, not {}", directory.path(), there,
       partitions);
}

void remove_all(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail(Errc::io, "{}: cannot be removed: {}", path, error.message());
}

}  // namespace

std::string datastore_path(const std::string& root, std::uint32_t partition) {
  return fmt::format("{}/subdir-{}", root, partition);
}

std::string datastore_records(const std::string& root) { return root + "/records"; }

DatastorePlace datastore_place_of(const std::string& given) {
  const std::string path = base::without_end_slashes(given);
  if (path.empty()) fail(Errc::invalid_argument, "a group of datastores needs a path");
  if (fs::exists(link_file(path))) return read_link(path);
  const auto at = path.find_last_of("@/");
  if (at != std::string::npos && path[at] == '@' && at != 0 && !fs::exists(path)) {
    const std::string root = path.substr(0, at), name = path.substr(at + 1);
    if (format::name_problem(name) == nullptr && fs::exists(datastore_records(root))) {
      return {root, name, ""};
    }
  }
  return {path, "", ""};
}

std::string version_name_for(const std::string& path) {
  std::string name = fs::path(base::without_end_slashes(path)).filename().string();
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_kept = std::isalnum(byte) != 0 || c == '.' || c == '_' || c == '+' || c == '-';
    if (!is_kept) c = '_';
  }
  if (name.empty() || name[0] == '.' || name[0] == '-') name = "s" + name;
  name.resize(std::min(name.size(), kMaxVersionNameBytes));
  return name;
}

void write_version_link(const std::string& path, const std::string& root,
                        const std::string& version) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail(Errc::io, "{}: cannot be created: {}", path, error.message());
  const std::string from = fs::relative(root, path).string();
  const std::string text = fmt::format("{}\n{}\n{}\n", kLinkTitle, from, version);
  base::NewFile made(base::posix_fs(), link_file(path));
  made.file().pwrite(std::as_bytes(std::span(text)), 0);
  made.replace();
  base::posix_fs().sync_directory(base::parent_of(path));
}

void clear_root(const std::string& root, std::uint32_t partitions, bool overwrite) {
  if (!fs::exists(root)) return;
  if (!fs::exists(datastore_records(root))) {
    fail(Errc::already_exists, "{}: exists and is not a group of datastores", root);
  }
  // An interrupted creation has no version, and perhaps no group.
  if (!fs::exists(datastore_records(root) + "/vellum.group")) return;
  const auto directory = group::RecordDirectory::open(base::posix_fs(), datastore_records(root));
  if (!directory.numbers().empty() && !overwrite) {
    fail(Errc::already_exists, "{}: a group of datastores already exists there", root);
  }
  remove_records(root, partitions);
}

void remove_records(const std::string& root, std::uint32_t partitions) {
  auto directory = group::RecordDirectory::open(base::posix_fs(), datastore_records(root));
  require_partitions(directory, partitions);
  directory.lock();
  for (const std::uint64_t number : directory.numbers()) {
    directory.remove(number);
    base::posix_fs().sync_directory(directory.path());
  }
  remove_all(directory.path());
}

void remove_datastore(const std::string& root, std::uint32_t partition) {
  remove_all(datastore_path(root, partition));
  std::error_code ignored;
  fs::remove(root, ignored);  // fails if it has other files
}

}  // namespace vellum::mpi
