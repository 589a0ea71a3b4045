#include "remote/engine/objects_at.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/bytes/hex.hpp"
#include "base/bytes/sha256.hpp"
#include "base/fail.hpp"
#include "base/utc_time.hpp"

namespace vellum::remote {
namespace {

// The directories of objects that are named by their content.
constexpr std::array kNamedByContent = {std::string_view("pieces/"), std::string_view("lists/"),
                                        std::string_view("names/")};
// So many objects of a directory are looked up one by one; then all of it is listed.
constexpr std::size_t kMaxSingleLookups = 100;
constexpr std::size_t kHashDigits = 64;
// A forger may put any number of versions: so many of the oldest are tried.
constexpr std::size_t kMaxTried = 8;

// Its directory, with the slash; empty: the object is not named by its content.
std::string content_directory(const std::string& key) {
  for (const std::string_view prefix : kNamedByContent) {
    if (key.starts_with(prefix)) return std::string(prefix);
  }
  return "";
}

class ObjectsAt final : public ObjectStore {
 public:
  ObjectsAt(std::unique_ptr<VersionedObjects> objects, ServerTime time)
      : objects_(std::move(objects)), time_(time) {}

  const std::string& url() const noexcept override { return objects_->url(); }
  std::size_t connections() const noexcept override { return objects_->connections(); }

  std::vector<std::byte> get(const std::string& key, std::uint64_t limit_bytes) override {
    const Found found = find(key);
    if (found.is_checked || found.versions.size() == 1) {
      return objects_->get_version(found.versions.front().name, limit_bytes);
    }
    return get_right_one(key, found, limit_bytes);
  }
  std::vector<std::byte> get_range(const std::string& key, ObjectRange range) override {
    return objects_->get_version_range(right_version(key), range);
  }
  std::vector<std::byte> get_start(const std::string& key, std::uint64_t most_bytes) override {
    return objects_->get_version_start(right_version(key), most_bytes);
  }
  bool has(const std::string& key, std::uint64_t size_bytes) override {
    try {
      const Found found = find(key);
      return std::ranges::any_of(found.versions, [&](const ObjectVersion& version) {
        return version.size_bytes == size_bytes;
      });
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
      return false;
    }
  }
  bool put_if_absent(const std::string& key, std::span<const std::byte>) override { refuse(key); }
  void put(const std::string& key, std::span<const std::byte>) override { refuse(key); }
  void remove(const std::string& key) override { refuse(key); }

  std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) override {
    require_versions();
    std::vector<ObjectInfo> out;
    if (most == 0) return out;
    objects_->visit_versions(prefix, [&](const std::vector<ObjectVersion>& versions) {
      const Found found = found_in(versions);
      if (!found.versions.empty()) {
        out.push_back({versions.front().name.key, found.versions.front().size_bytes});
      }
      return out.size() < most;
    });
    return out;
  }
  void stop() noexcept override { objects_->stop(); }

 private:
  // The versions that may be the object at that time, the most probable one first; empty: it had
  // none.
  struct Found {
    std::vector<ObjectVersion> versions;
    bool is_checked = false;  // the first one has the hash of the name
  };

  [[noreturn]] void refuse(const std::string& key) const {
    fail(Errc::read_only, "{}: {}: the remote as it was at {} cannot be changed", url(), key,
         base::utc_seconds(time_));
  }

  void require_versions() {
    const std::lock_guard lock(mutex_);
    if (has_versions_) return;
    objects_->require_versions();
    has_versions_ = true;
  }

  // Of one key, newest first.
  Found found_in(const std::vector<ObjectVersion>& versions) const {
    Found out;
    const auto first = std::ranges::find_if(
        versions, [&](const ObjectVersion& version) { return version.put_at <= time_; });
    if (first == versions.end()) return out;
    if (content_directory(first->name.key).empty()) {
      if (!first->is_deletion) out.versions.push_back(*first);
      return out;
    }
    std::copy_if(std::reverse_iterator(versions.end()), std::reverse_iterator(first),
                 std::back_inserter(out.versions),
                 [](const ObjectVersion& version) { return !version.is_deletion; });
    if (out.versions.size() > kMaxTried) out.versions.resize(kMaxTried);
    return out;
  }

  Found find(const std::string& key) {
    require_good_key(key);
    require_versions();
    const std::lock_guard lock(mutex_);
    if (const auto known = found_.find(key); known != found_.end()) return required(key, *known);
    const std::string directory = content_directory(key);
    if (!directory.empty() && listed_.contains(directory)) fail_missing(key);
    const bool lists_all = !directory.empty() && ++lookups_[directory] > kMaxSingleLookups;
    objects_->visit_versions(lists_all ? directory : key,
                             [&](const std::vector<ObjectVersion>& versions) {
                               const std::string& there = versions.front().name.key;
                               if (!lists_all && there != key) return false;
                               found_.try_emplace(there, found_in(versions));
                               return lists_all;
                             });
    if (lists_all) listed_.insert(directory);
    const auto now_known = found_.find(key);
    if (now_known == found_.end()) fail_missing(key);
    Found out = required(key, *now_known);
    // Only content is immutable: another object may be looked up for the last time.
    if (directory.empty()) found_.erase(now_known);
    return out;
  }
  [[noreturn]] void fail_missing(const std::string& key) const {
    fail(Errc::not_found, "{}: {}: it was not there at {}, or its versions are removed since",
         url(), key, base::utc_seconds(time_));
  }
  Found required(const std::string& key, const std::pair<const std::string, Found>& found) const {
    if (found.second.versions.empty()) fail_missing(key);
    return found.second;
  }

  static bool has_hash(const std::string& key, std::span<const std::byte> bytes) {
    return key.ends_with(base::hex(base::sha256(bytes)));
  }

  // Of several versions, the first whose content has the hash of the name. Where the name is
  // sealed, nobody can tell without the key: the oldest one.
  std::vector<std::byte> get_right_one(const std::string& key, Found found,
                                       std::uint64_t limit_bytes) {
    const std::size_t dash = key.rfind('-');
    const bool shows_hash = dash != std::string::npos && key.size() - dash - 1 == kHashDigits;
    std::optional<std::vector<std::byte>> right;
    for (std::size_t i = 0; shows_hash && i < found.versions.size() && !right.has_value(); ++i) {
      try {
        auto bytes = objects_->get_version(found.versions[i].name, limit_bytes);
        if (!has_hash(key, bytes)) continue;
        right = std::move(bytes);
        std::swap(found.versions.front(), found.versions[i]);
      } catch (const Error& e) {
        if (e.code() != Errc::corrupted && e.code() != Errc::not_found) throw;
      }
    }
    found.is_checked = true;
    {
      const std::lock_guard lock(mutex_);
      found_.insert_or_assign(key, found);
    }
    if (right.has_value()) return std::move(*right);
    return objects_->get_version(found.versions.front().name, limit_bytes);
  }

  VersionName right_version(const std::string& key) {
    const Found found = find(key);
    if (found.is_checked || found.versions.size() == 1) return found.versions.front().name;
    constexpr std::uint64_t kMaxObjectBytes = 1u << 30;
    get_right_one(key, found, kMaxObjectBytes);
    return find(key).versions.front().name;
  }

  const std::unique_ptr<VersionedObjects> objects_;
  const ServerTime time_;
  std::mutex mutex_;  // guards the members below
  bool has_versions_ = false;
  std::map<std::string, Found> found_;          // of content
  std::map<std::string, std::size_t> lookups_;  // by directory
  std::set<std::string> listed_;                // directories
};

}  // namespace

std::unique_ptr<ObjectStore> objects_at(std::unique_ptr<VersionedObjects> objects,
                                        ServerTime time) {
  return std::make_unique<ObjectsAt>(std::move(objects), time);
}

}  // namespace vellum::remote
