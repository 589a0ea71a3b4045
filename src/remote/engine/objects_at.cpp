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
// A forger may put any number of versions: so many of the oldest are tried besides the newest.
constexpr std::size_t kMaxOldestTried = 8;
// Today's lock counts for a clone of an earlier time, also if a thief has deleted it.
constexpr std::string_view kTodaysPrefix = "lock/";

// Its directory, with the slash; empty: the object is not named by its content.
std::string content_directory(const std::string& key) {
  for (const std::string_view prefix : kNamedByContent) {
    if (key.starts_with(prefix)) return std::string(prefix);
  }
  return "";
}

bool has_hash_of_name(const std::string& key, std::span<const std::byte> bytes) {
  return key.ends_with(base::hex(base::sha256(bytes)));
}
bool shows_hash(const std::string& key) {
  const std::size_t dash = key.rfind('-');
  return dash != std::string::npos && key.size() - dash - 1 == kHashDigits;
}

class ObjectsAt final : public ObjectStore {
 public:
  ObjectsAt(std::unique_ptr<VersionedObjects> objects, ServerTime time)
      : objects_(std::move(objects)), time_(time) {}

  const std::string& url() const noexcept override { return objects_->url(); }
  std::size_t connections() const noexcept override { return objects_->connections(); }
  // All of them, at any time.
  ObjectVersions* versions() noexcept override { return objects_.get(); }

  std::vector<std::byte> get(const std::string& key, std::uint64_t limit_bytes) override {
    const Found found = find(key);
    if (found.is_checked) return objects_->get_version(found.name(), limit_bytes);
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
  bool use_version(const std::string& key, std::size_t number) override {
    if (content_directory(key).empty() || shows_hash(key)) return false;
    find(key);
    const std::lock_guard lock(mutex_);
    const auto at = found_.find(key);
    if (at == found_.end() || number >= at->second.versions.size()) return false;
    at->second.chosen = number;
    return true;
  }
  bool put_if_absent(const std::string& key, std::span<const std::byte>) override { refuse(key); }
  void put(const std::string& key, std::span<const std::byte>) override { refuse(key); }
  void remove(const std::string& key) override { refuse(key); }

  std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) override {
    require_versions();
    std::vector<ObjectInfo> out;
    if (most == 0) return out;
    std::vector<std::size_t> unsure;
    objects_->visit_versions({prefix, "", time_}, [&](const std::vector<ObjectVersion>& versions) {
      const Found found = found_in(versions);
      if (found.versions.empty()) return true;
      if (!found.is_checked && found.has_sizes()) unsure.push_back(out.size());
      out.push_back({versions.front().name.key, found.versions.front().size_bytes});
      return out.size() < most;
    });
    for (const std::size_t i : unsure) {
      right_version(out[i].key);
      const Found found = find(out[i].key);
      out[i].size_bytes = found.versions.at(found.chosen).size_bytes;
    }
    return out;
  }
  void stop() noexcept override { objects_->stop(); }

 private:
  // The versions that may be the object at that time, the most probable one first; empty: it had
  // none.
  struct Found {
    std::vector<ObjectVersion> versions;
    std::size_t chosen = 0;
    bool is_checked = false;  // the chosen one has the hash of the name, or none could show it
    const VersionName& name() const { return versions.at(chosen).name; }
    bool has_sizes() const {  // several of them
      return std::ranges::any_of(versions, [&](const ObjectVersion& version) {
        return version.size_bytes != versions.front().size_bytes;
      });
    }
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
    const std::string& key = versions.front().name.key;
    const bool is_of_today = key.starts_with(kTodaysPrefix);
    const auto newest = std::ranges::find_if(versions, [&](const ObjectVersion& version) {
      return is_of_today ? !version.is_deletion : version.put_at <= time_;
    });
    const bool is_there = newest != versions.end() && !newest->is_deletion;
    if (is_there) out.versions.push_back(*newest);
    const bool is_content = !content_directory(key).empty();
    out.is_checked = !is_content || !shows_hash(key);
    // Some servers change the time of a version when its lock is extended.
    for (std::size_t i = versions.size(); is_content && i-- > 0;) {
      if (out.versions.size() > kMaxOldestTried) break;
      const bool is_newest = is_there && &versions[i] == &*newest;
      if (!versions[i].is_deletion && !is_newest) out.versions.push_back(versions[i]);
    }
    if (out.versions.size() == 1) out.is_checked = true;
    return out;
  }

  Found find(const std::string& key) {
    require_good_key(key);
    require_versions();
    const std::string directory = content_directory(key);
    bool lists_all = false;
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = found_.find(key); known != found_.end()) {
        return required(key, known->second);
      }
      if (!directory.empty() && listed_.contains(directory)) fail_missing(key);
      lists_all = !directory.empty() && ++lookups_[directory] > kMaxSingleLookups;
    }
    return lists_all ? find_in_listing(key, directory) : look_up(key, !directory.empty());
  }
  // Several threads may look up objects at once.
  Found look_up(const std::string& key, bool is_content) {
    Found out;
    objects_->visit_versions({key, "", time_}, [&](const std::vector<ObjectVersion>& versions) {
      if (versions.front().name.key == key) out = found_in(versions);
      return false;
    });
    if (is_content) {  // only that is immutable
      const std::lock_guard lock(mutex_);
      found_.try_emplace(key, out);
    }
    return required(key, out);
  }
  Found find_in_listing(const std::string& key, const std::string& directory) {
    const std::lock_guard listing(listing_mutex_);
    const auto is_listed = [&] {
      const std::lock_guard lock(mutex_);
      return listed_.contains(directory);
    };
    if (!is_listed()) {
      objects_->visit_versions({directory, "", time_}, [&](const auto& versions) {
        const std::lock_guard lock(mutex_);
        found_.try_emplace(versions.front().name.key, found_in(versions));
        return true;
      });
    }
    const std::lock_guard lock(mutex_);
    listed_.insert(directory);
    const auto found = found_.find(key);
    return required(key, found == found_.end() ? Found() : found->second);
  }
  [[noreturn]] void fail_missing(const std::string& key) const {
    fail(Errc::not_found, "{}: {}: it was not there at {}, or its versions are removed since",
         url(), key, base::utc_seconds(time_));
  }
  Found required(const std::string& key, const Found& found) const {
    if (found.versions.empty()) fail_missing(key);
    return found;
  }

  // Of several versions, the first whose content has the hash of the name. REQUIRES: it shows one.
  std::vector<std::byte> get_right_one(const std::string& key, Found found,
                                       std::uint64_t limit_bytes) {
    std::optional<std::vector<std::byte>> right;
    for (std::size_t i = 0; i < found.versions.size() && !right.has_value(); ++i) {
      try {
        auto bytes = objects_->get_version(found.versions[i].name, limit_bytes);
        if (!has_hash_of_name(key, bytes)) continue;
        right = std::move(bytes);
        found.chosen = i;
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
    return objects_->get_version(found.name(), limit_bytes);
  }

  VersionName right_version(const std::string& key) {
    const Found found = find(key);
    if (found.is_checked) return found.name();
    constexpr std::uint64_t kMaxObjectBytes = 1u << 30;
    get_right_one(key, found, kMaxObjectBytes);
    return find(key).name();
  }

  const std::unique_ptr<VersionedObjects> objects_;
  const ServerTime time_;
  std::mutex listing_mutex_;  // held while a directory is listed
  std::mutex mutex_;          // guards the members below
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
