#include "remote/seal/sealed_objects.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/bytes/hex.hpp"
#include "base/fail.hpp"
#include "base/parse_number.hpp"
#include "remote/engine/object_versions.hpp"
#include "remote/objects/object_key.hpp"
#include "remote/seal/sealed_object.hpp"

namespace vellum::remote {
namespace {

constexpr std::string_view kClearPrefix = "store/";
constexpr std::array kHashedPrefixes = {kPiecePrefix, kListPrefix, kNamesPrefix};
constexpr std::size_t kGenerationBytes = 9;  // eight digits and a dash
constexpr std::size_t kMaxKnownHeaders = 4096;

// The part of a key before its hash, which stays clear; empty: the key has no hash.
std::string_view before_hash(const std::string& key) {
  for (const std::string_view prefix : kHashedPrefixes) {
    if (!key.starts_with(prefix)) continue;
    return std::string_view(key).substr(0, prefix.size() + kGenerationBytes);
  }
  return {};
}

template <std::size_t kBytes>
bool parse_hash(std::string_view text, std::array<std::byte, kBytes>& out) {
  if (text.size() != 2 * kBytes ||
      text.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return false;
  }
  for (std::size_t i = 0; i < kBytes; ++i) {
    out[i] = static_cast<std::byte>(*base::parse_number<unsigned>(text.substr(2 * i, 2), 16));
  }
  return true;
}

std::span<const std::byte> clear_part(std::string_view text) {
  return std::as_bytes(std::span(text));
}

bool is_clear_key(const std::string& key) { return key.starts_with(kClearPrefix); }

// The versions of sealed objects, under the plain names of the objects.
class SealedVersions final : public ObjectVersions {
 public:
  // REQUIRES: both outlive it.
  SealedVersions(ObjectVersions& versions, const base::ObjectKeys& keys)
      : versions_(versions), keys_(keys) {}

  void require_versions() override { versions_.require_versions(); }
  void require_lock() override { versions_.require_lock(); }
  // The keys of one directory are in the order of their sealed names.
  void visit_versions(const VersionListing& what, const VisitKeyFn& visit) override {
    const VersionListing below{sealed_key(keys_, what.prefix), sealed_key(keys_, what.after),
                               what.time};
    versions_.visit_versions(below, [&](const auto& sealed) {
      std::vector<ObjectVersion> opened = sealed;
      for (ObjectVersion& version : opened) {
        version.name.key = opened_key(keys_, version.name.key);
        if (version.name.key.empty()) return true;
        if (!is_clear_key(version.name.key)) version.size_bytes = opened_bytes(version.size_bytes);
      }
      return visit(opened);
    });
  }
  std::vector<std::byte> get_version(const VersionName& version,
                                     std::uint64_t limit_bytes) override {
    if (is_clear_key(version.key)) return versions_.get_version(version, limit_bytes);
    const auto sealed = versions_.get_version(
        named(version), sealed_bytes(std::min(limit_bytes, kMaxSealableBytes)));
    std::vector<std::byte> out;
    if (const char* problem = open_object(keys_, version.key, sealed, out)) {
      fail(Errc::corrupted, "{}: {}", version.key, problem);
    }
    return out;
  }
  std::vector<VersionName> remove_versions(std::span<const VersionName> versions) override {
    std::vector<VersionName> sealed;
    for (const VersionName& version : versions) sealed.push_back(named(version));
    std::vector<VersionName> left = versions_.remove_versions(sealed);
    for (VersionName& version : left) version.key = opened_key(keys_, version.key);
    return left;
  }
  void lock_puts(const PutLock& lock) override { versions_.lock_puts(lock); }
  std::chrono::seconds put_lock() const override { return versions_.put_lock(); }
  std::optional<ServerTime> locked_until(const VersionName& version) override {
    return versions_.locked_until(named(version));
  }
  void lock_until(const VersionName& version, ServerTime time) override {
    versions_.lock_until(named(version), time);
  }
  ServerTime now() const override { return versions_.now(); }

 private:
  VersionName named(const VersionName& version) const {
    return {sealed_key(keys_, version.key), version.id};
  }
  ObjectVersions& versions_;
  const base::ObjectKeys& keys_;
};

class SealedObjects final : public ObjectStore {
 public:
  SealedObjects(std::shared_ptr<ObjectStore> objects, ObjectsKey key)
      : objects_(std::move(objects)), key_(std::move(key)) {
    if (auto* const versions = objects_->versions()) versions_.emplace(*versions, *key_.keys);
  }

  const std::string& url() const noexcept override { return objects_->url(); }
  std::size_t connections() const noexcept override { return objects_->connections(); }
  const ObjectsKey* objects_key() const noexcept override { return &key_; }
  ObjectVersions* versions() noexcept override {
    return versions_.has_value() ? &*versions_ : nullptr;
  }

  std::vector<std::byte> get(const std::string& key, std::uint64_t limit_bytes) override {
    if (is_clear_key(key)) return objects_->get(key, limit_bytes);
    return of_right_version(key, [&] { return open_whole(key, limit_bytes); });
  }
  std::vector<std::byte> get_range(const std::string& key, ObjectRange range) override {
    if (is_clear_key(key)) return objects_->get_range(key, range);
    if (range.length_bytes == 0) return {};
    return of_right_version(key, [&] { return open_range(key, range); });
  }
  std::vector<std::byte> get_start(const std::string& key, std::uint64_t most_bytes) override {
    if (is_clear_key(key)) return objects_->get_start(key, most_bytes);
    return of_right_version(key, [&] { return first_bytes(key, most_bytes, false); });
  }
  bool has(const std::string& key, std::uint64_t size_bytes) override {
    if (is_clear_key(key)) return objects_->has(key, size_bytes);
    return size_bytes <= kMaxSealableBytes && objects_->has(named(key), sealed_bytes(size_bytes));
  }
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    if (is_clear_key(key)) return objects_->put_if_absent(key, bytes);
    return objects_->put_if_absent(named(key), seal_object(*key_.keys, key, bytes));
  }
  void put(const std::string& key, std::span<const std::byte> bytes) override {
    if (is_clear_key(key)) return objects_->put(key, bytes);
    objects_->put(named(key), seal_object(*key_.keys, key, bytes));
  }
  std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) override;
  void make_durable(const std::string& key) override { objects_->make_durable(named(key)); }
  void remove(const std::string& key) override { objects_->remove(named(key)); }
  void remove_all(std::span<const std::string> keys) override {
    std::vector<std::string> names;
    for (const std::string& key : keys) names.push_back(named(key));
    objects_->remove_all(names);
  }
  void stop() noexcept override { objects_->stop(); }
  void sweep() noexcept override { objects_->sweep(); }

 private:
  // Where the place has several versions of the object, only this layer can tell which one opens.
  // The others are tried by one thread at a time.
  template <typename Read>
  std::vector<std::byte> of_right_version(const std::string& key, const Read& read) {
    try {
      return read();
    } catch (const Error& e) {
      if (e.code() != Errc::corrupted) throw;
      const std::lock_guard lock(choice_mutex_);
      for (std::size_t i = 0; objects_->use_version(named(key), i); ++i) {
        if (auto bytes = read_if_opens(read)) return std::move(*bytes);
      }
      throw;
    }
  }
  template <typename Read>
  static std::optional<std::vector<std::byte>> read_if_opens(const Read& read) {
    try {
      return read();
    } catch (const Error& e) {
      if (e.code() != Errc::corrupted && e.code() != Errc::not_found) throw;
      return std::nullopt;
    }
  }

  std::vector<std::byte> open_whole(const std::string& key, std::uint64_t limit_bytes) {
    const auto sealed =
        objects_->get(named(key), sealed_bytes(std::min(limit_bytes, kMaxSealableBytes)));
    std::vector<std::byte> out;
    require_open(key, open_object(*key_.keys, key, sealed, out));
    return out;
  }
  std::vector<std::byte> open_range(const std::string& key, ObjectRange range) {
    if (range.offset_bytes == 0) return first_bytes(key, range.length_bytes, true);
    const auto known = known_header(key);
    if (known.has_value()) {
      try {
        return bytes_in(key, *known, range);
      } catch (const Error& e) {  // it may have been put again since, with another salt
        if (e.code() != Errc::corrupted) throw;
      }
    }
    return bytes_in(key, read_header(key), range);
  }

  std::string named(const std::string& key) const { return sealed_key(*key_.keys, key); }
  void require_open(const std::string& key, const char* problem) const {
    if (problem != nullptr) fail(Errc::corrupted, "{}: {}: {}", url(), key, problem);
  }
  [[noreturn]] void fail_short(const std::string& key, std::uint64_t size_bytes,
                               std::uint64_t wanted_bytes) const {
    fail(Errc::corrupted, "{}: {}: {} bytes, and not the {} that are expected", url(), key,
         size_bytes, wanted_bytes);
  }

  // One request for the header and the chunks behind it.
  std::vector<std::byte> first_bytes(const std::string& key, std::uint64_t most_bytes, bool all) {
    const auto sealed = objects_->get_start(named(key), sealed_start(most_bytes));
    SealedHeader header;
    require_open(key, decode_sealed_header(sealed, header));
    note_header(key, header);
    if (all && header.size_bytes < most_bytes) fail_short(key, header.size_bytes, most_bytes);
    const ObjectRange range{0, std::min(most_bytes, header.size_bytes)};
    std::vector<std::byte> out;
    if (header.size_bytes == 0) {  // it is authentic only if its chunk opens
      require_open(key, open_object(*key_.keys, key, sealed, out));
    }
    if (range.length_bytes == 0) return out;
    const ObjectRange chunks = chunks_with(header, range);
    if (sealed.size() < kSealedHeaderBytes + chunks.length_bytes) {
      fail_short(key, sealed.size(), kSealedHeaderBytes + chunks.length_bytes);
    }
    const auto there = std::span(sealed).subspan(kSealedHeaderBytes,
                                                 static_cast<std::size_t>(chunks.length_bytes));
    require_open(key, open_chunks(*key_.keys, key, header, range, there, out));
    return out;
  }
  // The sealed bytes with this start of an object of any size.
  static std::uint64_t sealed_start(std::uint64_t bytes) {
    bytes = std::min(bytes, kMaxSealableBytes);
    const std::uint64_t chunks = bytes / kSealedChunkBytes + (bytes % kSealedChunkBytes != 0);
    return sealed_bytes(chunks * kSealedChunkBytes);
  }

  std::vector<std::byte> bytes_in(const std::string& key, const SealedHeader& header,
                                  ObjectRange range) {
    if (range.offset_bytes > header.size_bytes ||
        range.length_bytes > header.size_bytes - range.offset_bytes) {
      fail_short(key, header.size_bytes, range.offset_bytes + range.length_bytes);
    }
    const auto sealed = objects_->get_range(named(key), chunks_with(header, range));
    std::vector<std::byte> out;
    require_open(key, open_chunks(*key_.keys, key, header, range, sealed, out));
    return out;
  }

  SealedHeader read_header(const std::string& key) {
    const auto start = objects_->get_start(named(key), kSealedHeaderBytes);
    SealedHeader header;
    require_open(key, decode_sealed_header(start, header));
    note_header(key, header);
    return header;
  }
  std::optional<SealedHeader> known_header(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto at = headers_.find(key);
    return at == headers_.end() ? std::nullopt : std::optional(at->second);
  }
  void note_header(const std::string& key, const SealedHeader& header) {
    if (before_hash(key).empty()) return;
    const std::lock_guard lock(mutex_);
    if (headers_.size() >= kMaxKnownHeaders) headers_.clear();
    headers_[key] = header;
  }

  const std::shared_ptr<ObjectStore> objects_;
  const ObjectsKey key_;
  std::optional<SealedVersions> versions_;
  std::mutex choice_mutex_;   // of several versions
  mutable std::mutex mutex_;  // guards the member below
  // Of objects that are read in parts. None is trusted: a chunk opens with the right one only.
  std::map<std::string, SealedHeader> headers_;
};

// The order of the names in the bucket is another.
std::vector<ObjectInfo> SealedObjects::list(const std::string& prefix, std::size_t most) {
  const bool has_hashes = std::ranges::any_of(kHashedPrefixes, [&](const std::string_view hashed) {
    return prefix.starts_with(hashed) || hashed.starts_with(prefix);
  });
  const std::string_view start = before_hash(prefix);
  const std::string below(start.empty() ? std::string_view(prefix) : start);
  std::vector<ObjectInfo> out;
  for (ObjectInfo& object : objects_->list(below, has_hashes ? SIZE_MAX : most)) {
    std::string key = opened_key(*key_.keys, object.key);
    if (key.empty() || !key.starts_with(prefix)) continue;
    const std::uint64_t bytes =
        is_clear_key(key) ? object.size_bytes : opened_bytes(object.size_bytes);
    out.push_back({std::move(key), bytes});
  }
  std::ranges::sort(out, {}, &ObjectInfo::key);
  if (out.size() > most) out.resize(most);
  return out;
}

}  // namespace

std::string sealed_key(const base::ObjectKeys& keys, const std::string& key) {
  const std::string_view start = before_hash(key);
  base::ObjectNameHash hash;
  if (start.empty() || !parse_hash(std::string_view(key).substr(start.size()), hash)) return key;
  return std::string(start) + base::hex(keys.seal_name(clear_part(start), hash));
}

std::string opened_key(const base::ObjectKeys& keys, const std::string& key) {
  const std::string_view start = before_hash(key);
  if (start.empty()) return key;
  base::SealedName sealed;
  if (!parse_hash(std::string_view(key).substr(start.size()), sealed)) return "";
  const auto hash = keys.open_name(clear_part(start), sealed);
  return hash.has_value() ? std::string(start) + base::hex(*hash) : "";
}

std::shared_ptr<ObjectStore> open_sealed_objects(std::shared_ptr<ObjectStore> objects,
                                                 ObjectsKey key) {
  return std::make_shared<SealedObjects>(std::move(objects), std::move(key));
}

}  // namespace vellum::remote
