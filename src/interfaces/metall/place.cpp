// interfaces/metall/place.cpp: see place.hpp.
#include "interfaces/metall/place.hpp"

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <string_view>
#include <vellum/store.hpp>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "format/wire/superblock.hpp"

namespace vellum::datastore {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxLinkBytes = 8192;
constexpr std::string_view kLinkTitle = "vellum datastore link";

// Lines: title, path of the store relative to the link's directory, version.
void read_link(DatastorePlace& place) {
  const auto bytes = base::read_whole(base::posix_fs(), place.link(), kMaxLinkBytes);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string_view lines[3];
  for (auto& line : lines) {
    const auto end = rest.find('\n');
    if (end == std::string_view::npos || end == 0) {
      fail(Errc::corrupted, "{}: is not a link to a version of a store", place.link());
    }
    line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  if (lines[0] != kLinkTitle || format::name_problem(std::string(lines[2])) != nullptr) {
    fail(Errc::corrupted, "{}: is not a link to a version of a store", place.link());
  }
  const fs::path store(lines[1]);
  place.store =
      (store.is_absolute() ? store : fs::path(place.directory) / store).lexically_normal().string();
  place.version = lines[2];
  place.owner_directory = base::parent_of(place.store);
  place.linked = true;
}

// DIR@NAME, when DIR is a datastore with a store of its own. Empty otherwise.
std::pair<std::string, std::string> split_version(const std::string& path) {
  const auto at = path.find_last_of("@/");
  if (at == std::string::npos || path[at] != '@' || at == 0) return {};
  const std::string directory = path.substr(0, at), name = path.substr(at + 1);
  if (format::name_problem(name) != nullptr || !fs::exists(directory + "/store")) return {};
  return {directory, name};
}

}  // namespace

DatastorePlace place_of(const std::string& path) {
  DatastorePlace place;
  place.directory = base::without_end_slashes(path);
  if (place.directory.empty()) fail(Errc::invalid_argument, "a datastore needs a path");
  const auto [owner, name] = split_version(place.directory);
  if (!owner.empty() && !fs::exists(place.directory)) {
    place.directory = owner + "/versions/" + name;
    place.store = owner + "/store";
    place.version = name;
    place.owner_directory = owner;
    place.linked = true;
    return place;
  }
  if (fs::exists(place.link())) {
    read_link(place);
    return place;
  }
  place.store = place.directory + "/store";
  place.version = kMainBranch;
  place.owner_directory = place.directory;
  return place;
}

bool is_there(const DatastorePlace& place) {
  if (!fs::exists(place.store)) return fs::exists(place.link());
  try {
    return Store::open(place.store).contains(place.version);
  } catch (const Error& error) {
    if (error.code() != Errc::not_a_store) throw;
    return false;  // a killed process's unfinished store, or no store
  }
}

void make_directory(const DatastorePlace& place) {
  std::error_code error;
  fs::create_directories(place.files(), error);
  if (error) fail(Errc::io, "{}: cannot be created: {}", place.files(), error.message());
}

std::string snapshot_name(const DatastorePlace& place, const std::string& store_path,
                          const std::string& begun) {
  std::error_code error;
  if (place.linked && fs::equivalent(place.store, store_path, error)) return place.version;
  if (place.linked) {
    fail(Errc::invalid_argument, "{} is a version of {}, not of {}", place.directory, place.store,
         store_path);
  }
  std::string name = fs::path(place.directory).filename().string();
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool kept = std::isalnum(byte) != 0 || c == '.' || c == '_' || c == '+' || c == '-';
    if (!kept) c = '_';
  }
  if (name.empty() || name[0] == '.' || name[0] == '-') name = "s" + name;
  name.resize(std::min<std::size_t>(name.size(), 180));
  const Store store = Store::open(store_path);
  std::string free = name;
  for (int i = 2; free == begun || store.contains(free); ++i) {
    free = name + "-" + std::to_string(i);
  }
  assert(format::name_problem(free) == nullptr);
  return free;
}

void write_link(const DatastorePlace& place, const std::string& store_path,
                const std::string& version) {
  assert(format::name_problem(version) == nullptr);
  std::error_code error;
  fs::create_directories(place.directory, error);
  if (error) fail(Errc::io, "{}: cannot be created: {}", place.directory, error.message());
  const std::string from = fs::relative(store_path, place.directory).string();
  const std::string text = fmt::format("{}\n{}\n{}\n", kLinkTitle, from, version);
  base::NewFile made(base::posix_fs(), place.link());
  made.file().pwrite(std::as_bytes(std::span(text)), 0);
  made.replace();
}

}  // namespace vellum::datastore
