#include "remote/session/local_cache.hpp"

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "base/try_to.hpp"

namespace vellum::remote {
namespace {

constexpr std::uint64_t kMaxCachedBytes = 64u << 20;

}  // namespace

LocalCache::LocalCache(base::Fs& fs, std::string directory, std::string tmp_directory)
    : fs_(fs), directory_(std::move(directory)), tmp_directory_(std::move(tmp_directory)) {}

std::string LocalCache::name_of(const std::string& key) const {
  std::string name = key;
  for (char& c : name) {
    if (c == '/') c = '.';
  }
  return name;
}

bool LocalCache::get(const std::string& key, std::vector<std::byte>& out) const {
  return base::try_to(
      [&] { out = base::read_whole(fs_, directory_ + "/" + name_of(key), kMaxCachedBytes); });
}

bool LocalCache::get(const std::string& key, const base::Sha256& hash,
                     std::vector<std::byte>& out) const {
  return get(key, out) && base::sha256(out) == hash;
}

bool LocalCache::get(const std::string& key, std::uint64_t size_bytes,
                     std::vector<std::byte>& out) const {
  return get(key, out) && out.size() == size_bytes;
}

void LocalCache::put(const std::string& key, std::span<const std::byte> bytes) {
  base::try_to([&] {
    base::ensure_directory(fs_, directory_);
    base::replace_hint_file(fs_, tmp_directory_, directory_, name_of(key), bytes);
  });
}

}  // namespace vellum::remote
