#include "remote/engine/directory_engine.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/files/new_file.hpp"
#include "remote/engine/attempts.hpp"

namespace vellum::remote {
namespace {

constexpr const char* kTmpName = "tmp";

std::string name_of(const std::string& key) { return key.substr(key.rfind('/') + 1); }

}  // namespace

DirectoryEngine::DirectoryEngine(base::Fs& fs, std::string path)
    : path_(std::move(path)),
      url_("file://" + path_),
      beneath_(base::beneath(fs, path_)),
      fs_(*beneath_) {}

std::string DirectoryEngine::path_of(const std::string& key) const {
  require_good_key(key);
  return path_ + "/" + key;
}

std::vector<std::byte> DirectoryEngine::get(const std::string& key, std::uint64_t limit_bytes) {
  return base::read_whole(fs_, path_of(key), limit_bytes);
}

std::vector<std::byte> DirectoryEngine::get_range(const std::string& key, ObjectRange range) {
  const auto file = fs_.open(path_of(key), base::OpenMode::read_only);
  const std::uint64_t size = file->size_bytes();
  if (range.offset_bytes > size || range.length_bytes > size - range.offset_bytes) {
    fail(Errc::corrupted, "{}: {} bytes, and not the {} that are expected", file->path(), size,
         range.offset_bytes + range.length_bytes);
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(range.length_bytes));
  file->pread(bytes, range.offset_bytes);
  return bytes;
}

std::vector<std::byte> DirectoryEngine::get_start(const std::string& key,
                                                  std::uint64_t most_bytes) {
  const auto file = fs_.open(path_of(key), base::OpenMode::read_only);
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(file->size_bytes(), most_bytes)));
  file->pread(bytes, 0);
  return bytes;
}

bool DirectoryEngine::has(const std::string& key, std::uint64_t size_bytes) {
  try {
    return fs_.open(path_of(key), base::OpenMode::read_only)->size_bytes() == size_bytes;
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    return false;
  }
}

std::string DirectoryEngine::make_directories(const std::string& key) {
  std::string directory = path_;
  make_directory(directory);
  base::ensure_directory(fs_, path_ + "/" + kTmpName);
  for (std::size_t at = 0, slash; (slash = key.find('/', at)) != std::string::npos;
       at = slash + 1) {
    directory += "/" + key.substr(at, slash - at);
    make_directory(directory);
  }
  return directory;
}

// The creator of an existing directory may have been killed before its name was durable.
void DirectoryEngine::make_directory(const std::string& directory) {
  const bool is_new = base::ensure_directory(fs_, directory);
  {
    const std::lock_guard lock(mutex_);
    if (!is_new && durable_.contains(directory)) return;
  }
  fs_.sync_directory(base::parent_of(directory));
  const std::lock_guard lock(mutex_);
  durable_.insert(directory);
}

void DirectoryEngine::make_durable(const std::string& key) {
  fs_.sync_directory(base::parent_of(path_of(key)));
  make_directories(key);
}

bool DirectoryEngine::put_if_absent(const std::string& key, std::span<const std::byte> bytes) {
  const std::string path = path_of(key);
  if (!fs_.exists(path)) {
    const std::string directory = make_directories(key);
    try {
      base::publish_file(fs_, path_ + "/" + kTmpName, directory, name_of(key), bytes, false);
      return true;
    } catch (const Error& e) {
      if (e.code() != Errc::already_exists) throw;
    }
  }
  make_durable(key);
  return false;
}

void DirectoryEngine::put(const std::string& key, std::span<const std::byte> bytes) {
  require_good_key(key);
  const std::string directory = make_directories(key);
  base::publish_file(fs_, path_ + "/" + kTmpName, directory, name_of(key), bytes, true);
}

void DirectoryEngine::list_below(const std::string& directory, const std::string& prefix,
                                 std::vector<ObjectInfo>& out) const {
  const std::string path = directory.empty() ? path_ : path_ + "/" + directory;
  for (const auto& entry : fs_.list(path)) {
    const std::string key = directory.empty() ? entry.name : directory + "/" + entry.name;
    if (directory.empty() && entry.name == kTmpName) continue;
    if (!is_good_key(key)) continue;
    if (entry.is_directory) {
      const std::string inside = key + "/";
      if (inside.starts_with(prefix) || prefix.starts_with(inside)) list_below(key, prefix, out);
    } else if (entry.is_regular_file && key.starts_with(prefix)) {
      out.push_back({key, 0});
    }
  }
}

// Nullopt: the first of a limited listing has been removed meanwhile, and another may have come
// before it.
std::optional<std::vector<ObjectInfo>> DirectoryEngine::list_once(const std::string& prefix,
                                                                  std::size_t most) const {
  std::vector<ObjectInfo> out;
  if (!fs_.exists(path_)) return out;
  list_below("", prefix, out);
  std::sort(out.begin(), out.end(),
            [](const ObjectInfo& a, const ObjectInfo& b) { return a.key < b.key; });
  if (out.size() > most) out.resize(most);
  std::vector<ObjectInfo> there;
  there.reserve(out.size());
  for (ObjectInfo& object : out) {
    try {
      object.size_bytes = fs_.open(path_of(object.key), base::OpenMode::read_only)->size_bytes();
      there.push_back(std::move(object));
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
      if (&object == &out.front() && most != SIZE_MAX) return std::nullopt;
    }
  }
  return there;
}

std::vector<ObjectInfo> DirectoryEngine::list(const std::string& prefix, std::size_t most) {
  for (Attempts attempts(*this);;) {
    attempts.begin();
    if (auto there = list_once(prefix, most)) return std::move(*there);
  }
}

void DirectoryEngine::remove(const std::string& key) {
  const std::string path = path_of(key);
  try {
    fs_.unlink(path);
  } catch (const Error& e) {
    if (e.code() == Errc::not_found) return;
    throw;
  }
  fs_.sync_directory(base::parent_of(path));
}

// An active writer holds a lock on its file.
void DirectoryEngine::sweep() noexcept {
  try {
    const std::string tmp = path_ + "/" + kTmpName;
    if (!fs_.exists(tmp)) return;
    for (const auto& entry : fs_.list(tmp)) base::remove_unpublished(fs_, tmp + "/" + entry.name);
  } catch (const std::exception&) {
    // The next gc removes it.
  }
}

}  // namespace vellum::remote
