#include "remote/s3/s3_engine.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "base/fail.hpp"
#include "base/utc_time.hpp"
#include "remote/engine/objects_at.hpp"
#include "remote/s3/aws_config.hpp"
#include "remote/s3/libcurl.hpp"
#include "remote/s3/s3_replies.hpp"
#include "remote/s3/s3_requests.hpp"

namespace vellum::remote {
namespace {

constexpr std::uint64_t kMaxAnswerBytes = 64u << 10;  // of a question, or an error instead
constexpr std::size_t kMaxListed = 1000;              // by one request
constexpr std::size_t kMaxListings = 1u << 20;        // of one list()
constexpr std::size_t kMaxDeleted = 1000;             // by one request

class S3Engine final : public VersionedObjects {
 public:
  explicit S3Engine(S3Options options) : requests_(std::move(options)) {}

  const std::string& url() const noexcept override { return requests_.options().url; }
  std::size_t connections() const noexcept override { return requests_.options().http.connections; }

  std::vector<std::byte> get(const std::string& key, std::uint64_t limit_bytes) override {
    return read_whole({key, ""}, limit_bytes);
  }
  std::vector<std::byte> get_range(const std::string& key, ObjectRange range) override {
    return read_range({key, ""}, range);
  }
  std::vector<std::byte> get_start(const std::string& key, std::uint64_t most_bytes) override {
    return read_start({key, ""}, most_bytes);
  }
  std::vector<std::byte> get_version(const VersionName& version,
                                     std::uint64_t limit_bytes) override {
    return read_whole(version, limit_bytes);
  }
  std::vector<std::byte> get_version_range(const VersionName& version, ObjectRange range) override {
    return read_range(version, range);
  }
  std::vector<std::byte> get_version_start(const VersionName& version,
                                           std::uint64_t most_bytes) override {
    return read_start(version, most_bytes);
  }

  // The last byte, and the one behind it: a shorter object has neither, and a longer one both. A
  // server that ignores ranges, or does not give out an archived object, lists it.
  bool has(const std::string& key, std::uint64_t size_bytes) override {
    require_good_key(key);
    assert(size_bytes > 0);
    const HttpResponse response =
        perform_range({key, ""}, {size_bytes - 1, 2}, kMaxAnswerBytes).response;
    if (response.status == 404 || response.status == 416) return false;
    if (response.status == 206 && response.body.size() <= 2) return response.body.size() == 1;
    const std::vector<ObjectInfo> listed = list(key, 1);
    return !listed.empty() && listed.front() == ObjectInfo{key, size_bytes};
  }

  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    require_good_key(key);
    S3Call call{"PUT", key, {}, {{"if-none-match", "*"}}, bytes};
    call.lock = lock_of(key);
    const S3Reply reply = requests_.perform(call);
    if (reply.response.status == 412) {
      if (call.lock.count() != 0) keep_locked(key, call.lock);
      return reply.is_repeated && has_content(key, bytes);
    }
    requests_.require_status(reply, key, {200, 201, 204});
    return true;
  }

  void put(const std::string& key, std::span<const std::byte> bytes) override {
    require_good_key(key);
    S3Call call{"PUT", key, {}, {}, bytes};
    call.lock = lock_of(key);
    requests_.require_status(requests_.perform(call), key, {200, 201, 204});
  }

  std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) override {
    std::vector<ObjectInfo> out;
    std::set<std::string> tokens;
    std::string token, last;
    while (out.size() < most) {
      const S3Listing listing = list_some(prefix, token, most - out.size());
      for (const ObjectInfo& object : listing.objects) add(object, prefix, out);
      token = listing.next;
      if (token.empty()) break;
      const bool goes_on = tokens.insert(token).second && tokens.size() < kMaxListings &&
                           (listing.objects.empty() || listing.objects.back().key > last);
      if (!goes_on) {
        fail(Errc::io, "{}: the server's listing repeats itself, and has no end", url());
      }
      if (!listing.objects.empty()) last = listing.objects.back().key;
    }
    if (out.size() > most) out.resize(most);
    return out;
  }

  void stop() noexcept override { requests_.stop(); }

  void remove(const std::string& key) override {
    require_good_key(key);
    requests_.require_status(requests_.perform({"DELETE", key, {}, {}, {}}), key, {200, 204, 404});
  }

  // An object that the server does not delete together with others is deleted by a request of its
  // own, which also gives the reason if it fails.
  void remove_all(std::span<const std::string> keys) override {
    for (; !keys.empty(); keys = keys.subspan(std::min(keys.size(), kMaxDeleted))) {
      for (const std::string& key : delete_some(keys.first(std::min(keys.size(), kMaxDeleted)))) {
        remove(key);
      }
    }
  }

  void require_versions() override;
  void require_lock() override;
  void visit_versions(const VersionListing& what, const VisitKeyFn& visit) override;
  std::vector<VersionName> remove_versions(std::span<const VersionName> versions) override;
  void lock_puts(const PutLock& lock) override {
    const std::lock_guard guard(lock_mutex_);
    lock_ = lock;
  }
  std::chrono::seconds put_lock() const override {
    const std::lock_guard guard(lock_mutex_);
    return lock_.duration;
  }
  std::optional<ServerTime> locked_until(const VersionName& version) override;
  void lock_until(const VersionName& version, ServerTime time) override;
  ServerTime now() const override { return requests_.now(); }

 private:
  // An empty id: the newest version.
  static NameValues query_of(const VersionName& version) {
    if (version.id.empty()) return {};
    return {{"versionId", version.id}};
  }

  std::vector<std::byte> read_whole(const VersionName& version, std::uint64_t limit_bytes) {
    const std::string& key = version.key;
    require_good_key(key);
    S3Reply reply = requests_.perform(
        {"GET", key, query_of(version), {}, {}, std::max(limit_bytes, kMaxS3ReplyBytes)});
    auto& body = reply.response.body;
    if (reply.response.too_large || (reply.response.status == 200 && body.size() > limit_bytes)) {
      fail(Errc::corrupted, "{}: more than the {} bytes that are expected", requests_.name(key),
           limit_bytes);
    }
    requests_.require_status(reply, key, {200});
    return std::move(body);
  }

  std::vector<std::byte> read_range(const VersionName& version, ObjectRange range) {
    const std::string& key = version.key;
    require_good_key(key);
    if (range.length_bytes == 0) return {};
    const std::uint64_t last = range.offset_bytes + range.length_bytes - 1;
    S3Reply reply = perform_range(version, range);
    if (reply.response.status == 416 ||
        (reply.response.status == 206 && reply.response.body.size() != range.length_bytes)) {
      fail(Errc::corrupted, "{}: does not have the bytes {} to {} that are expected",
           requests_.name(key), range.offset_bytes, last);
    }
    requests_.require_status(reply, key, {206});
    return std::move(reply.response.body);
  }

  std::vector<std::byte> read_start(const VersionName& version, std::uint64_t most_bytes) {
    const std::string& key = version.key;
    require_good_key(key);
    if (most_bytes == 0) return {};
    S3Reply reply = perform_range(version, {0, most_bytes});
    if (reply.response.status == 416) return {};  // an empty object has no range
    const bool fits = reply.response.body.size() <= most_bytes;
    if (reply.response.status == 206 && !fits) {
      fail(Errc::corrupted, "{}: more than the {} bytes that were asked for", requests_.name(key),
           most_bytes);
    }
    // A server may send a shorter object as a whole.
    const bool is_whole = reply.response.status == 200 && fits && !reply.response.too_large;
    if (!is_whole) requests_.require_status(reply, key, {206});
    return std::move(reply.response.body);
  }

  S3Reply perform_range(const VersionName& version, const ObjectRange& range,
                        std::uint64_t most_bytes = kMaxS3ReplyBytes) {
    assert(range.length_bytes > 0);
    const std::uint64_t last = range.offset_bytes + range.length_bytes - 1;
    return requests_.perform({"GET",
                              version.key,
                              query_of(version),
                              {{"range", fmt::format("bytes={}-{}", range.offset_bytes, last)}},
                              {},
                              std::max(range.length_bytes, most_bytes)});
  }

  // 0: none.
  std::chrono::seconds lock_of(const std::string& key) const {
    const std::lock_guard guard(lock_mutex_);
    const bool is_unlocked = std::ranges::any_of(
        lock_.unlocked, [&](const auto& prefix) { return key.starts_with(prefix); });
    return is_unlocked ? std::chrono::seconds(0) : lock_.duration;
  }
  // Another may have put the object, with a shorter lock or none. A refusal does not end the push:
  // passes report it (remote/locks.hpp).
  void keep_locked(const std::string& key, std::chrono::seconds duration) {
    try {
      const auto until = locked_until({key, ""});
      const ServerTime now_there = now();
      if (until.has_value() && *until >= now_there + least_of_lock(duration)) return;
      lock_until({key, ""}, now_there + duration);
    } catch (const RefusedRequest&) {
    } catch (const Error& e) {  // it was removed since, or the reply does not parse
      if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
    }
  }

  S3Versions list_versions(const std::string& prefix, const VersionName& after);
  std::optional<std::vector<VersionName>> remove_some_versions(
      std::span<const VersionName> versions);
  std::optional<std::string> key_there(const std::string& full_key,
                                       const std::string& prefix) const;

  // Whether the object has this content, so that one of our own attempts has created it.
  bool has_content(const std::string& key, std::span<const std::byte> bytes) {
    try {
      return std::ranges::equal(get(key, bytes.size()), bytes);
    } catch (const Error& e) {
      if (e.code() == Errc::corrupted || e.code() == Errc::not_found) return false;
      throw;
    }
  }

  S3Listing list_some(const std::string& prefix, const std::string& token, std::size_t most) {
    S3Call call{"GET", "", {{"list-type", "2"}, {"encoding-type", "url"}}, {}, {}};
    call.query.emplace_back("prefix", requests_.in_bucket(prefix));
    call.query.emplace_back("max-keys", std::to_string(std::min(most, kMaxListed)));
    if (!token.empty()) call.query.emplace_back("continuation-token", token);
    const S3Reply reply = requests_.perform(call);
    requests_.require_status(reply, "", {200});
    S3Listing out;
    if (!parse_s3_listing(reply.response.body, out)) {
      fail(Errc::io, "{}: the server's listing does not parse", url());
    }
    return out;
  }

  // Deletes objects by one request. Returns those that it has not deleted: all of them at a server
  // without such requests.
  std::vector<std::string> delete_some(std::span<const std::string> keys) {
    std::vector<std::string> left(keys.begin(), keys.end());
    if (keys.size() == 1 || !deletes_many_) return left;
    std::vector<std::string> full;
    for (const std::string& key : keys) {
      require_good_key(key);
      full.push_back(requests_.in_bucket(key));
    }
    const std::string body = s3_deletion(full);
    const S3Reply reply =
        requests_.perform({"POST", "", {{"delete", ""}}, {}, std::as_bytes(std::span(body))});
    if (is_refusal(reply.response) || reply.response.status == 501) {
      deletes_many_ = false;
      return left;
    }
    requests_.require_status(reply, "", {200});
    std::vector<std::string> kept;
    if (!parse_s3_deletion(reply.response.body, kept)) return left;
    std::erase_if(left, [&](const std::string& key) {
      return std::ranges::find(kept, requests_.in_bucket(key)) == kept.end();
    });
    return left;
  }

  void add(const ObjectInfo& object, const std::string& prefix,
           std::vector<ObjectInfo>& out) const {
    if (auto key = key_there(object.key, prefix)) {
      out.push_back({std::move(*key), object.size_bytes});
    }
  }

  S3Requests requests_;
  std::atomic<bool> deletes_many_{true};  // false: the server has refused such a request
  mutable std::mutex lock_mutex_;         // guards the member below
  PutLock lock_;
};

// nullopt: the object is not Vellum's.
std::optional<std::string> S3Engine::key_there(const std::string& full_key,
                                               const std::string& prefix) const {
  const std::string& place = requests_.options().prefix;
  const std::string start = place.empty() ? "" : place + "/";
  if (!full_key.starts_with(start)) return std::nullopt;
  std::string key = full_key.substr(start.size());
  if (!key.starts_with(prefix) || !is_good_key(key)) return std::nullopt;
  return key;
}

void S3Engine::require_versions() {
  const S3Reply reply = requests_.perform({"GET", "", {{"versioning", ""}}, {}, {}});
  if (reply.response.status == 403) return;  // a policy may grant the versions, and not this
  requests_.require_status(reply, "", {200});
  if (has_s3_versions(reply.response.body)) return;
  fail(Errc::unsupported,
       "{}: the bucket keeps no older versions of its objects (versioning is not enabled), so its "
       "state at an earlier time is lost",
       url());
}

void S3Engine::require_lock() {
  const S3Reply reply = requests_.perform({"GET", "", {{"object-lock", ""}}, {}, {}});
  const bool is_answer = reply.response.failure.empty() && reply.response.status == 200;
  if (is_answer && has_s3_object_lock(reply.response.body)) return;
  const bool is_no = is_answer || reply.response.status == 404 || reply.response.status == 400 ||
                     reply.response.status == 405 || reply.response.status == 501;
  if (!is_no || reply.error.code == "NoSuchBucket") requests_.require_status(reply, "", {200});
  fail(Errc::unsupported,
       "{}: Object Lock is not enabled for the bucket, or its server has none: a bucket gets it "
       "when it is created",
       url());
}

S3Versions S3Engine::list_versions(const std::string& prefix, const VersionName& after) {
  S3Call call{"GET", "", {{"versions", ""}, {"encoding-type", "url"}}, {}, {}};
  call.query.emplace_back("prefix", requests_.in_bucket(prefix));
  call.query.emplace_back("max-keys", std::to_string(kMaxListed));
  if (!after.key.empty()) call.query.emplace_back("key-marker", after.key);
  if (!after.id.empty()) call.query.emplace_back("version-id-marker", after.id);
  const S3Reply reply = requests_.perform(call);
  requests_.require_status(reply, "", {200});
  S3Versions out;
  if (!parse_s3_versions(reply.response.body, out)) {
    fail(Errc::io, "{}: the server's listing of versions does not parse", url());
  }
  return out;
}

// The versions of a key may be in several replies.
void S3Engine::visit_versions(const VersionListing& what, const VisitKeyFn& visit) {
  constexpr std::size_t kMaxOfKey = 8192;
  std::map<std::string, std::vector<ObjectVersion>> keys;  // those that may be incomplete
  std::set<VersionName> seen;
  VersionName after;
  if (!what.after.empty()) after.key = requests_.in_bucket(what.after);
  for (;;) {
    S3Versions listed = list_versions(what.prefix, after);
    for (ObjectVersion& version : listed.versions) {
      auto key = key_there(version.name.key, what.prefix);
      if (!key.has_value() || *key <= what.after) continue;
      version.name.key = *key;
      auto& versions = keys[*key];
      versions.push_back(std::move(version));
      if (versions.size() <= kMaxOfKey) continue;
      leave_out_middle(versions, what.time);
    }
    const bool is_end = listed.next.key.empty();
    if (!is_end && (listed.next.key < after.key || !seen.insert(listed.next).second ||
                    seen.size() > kMaxListings)) {
      fail(Errc::io, "{}: the server's listing of versions repeats itself", url());
    }
    while (!keys.empty() &&
           (is_end || requests_.in_bucket(keys.begin()->first) < listed.next.key)) {
      sort_newest_first(keys.begin()->second);
      if (!visit(keys.begin()->second)) return;
      keys.erase(keys.begin());
    }
    if (is_end) return;
    after = listed.next;
  }
}

// Removes versions by one request. Returns those that the server keeps; nullopt: it does not take
// the request as a whole.
std::optional<std::vector<VersionName>> S3Engine::remove_some_versions(
    std::span<const VersionName> versions) {
  if (!deletes_many_) return std::nullopt;
  std::vector<VersionName> full;
  for (const VersionName& version : versions) {
    require_good_key(version.key);
    full.push_back({requests_.in_bucket(version.key), version.id});
  }
  const std::string body = s3_version_deletion(full);
  const S3Reply reply =
      requests_.perform({"POST", "", {{"delete", ""}}, {}, std::as_bytes(std::span(body))});
  if (is_refusal(reply.response) || reply.response.status == 501) return std::nullopt;
  requests_.require_status(reply, "", {200});
  std::vector<VersionName> kept;
  if (!parse_s3_version_deletion(reply.response.body, kept)) return std::nullopt;
  std::vector<VersionName> left(versions.begin(), versions.end());
  std::erase_if(left, [&](const VersionName& version) {
    return std::ranges::find(kept, VersionName{requests_.in_bucket(version.key), version.id}) ==
           kept.end();
  });
  return left;
}

// Some servers refuse a request as a whole if one version is locked: then each gets one of its own.
std::vector<VersionName> S3Engine::remove_versions(std::span<const VersionName> versions) {
  std::vector<VersionName> out;
  for (; !versions.empty(); versions = versions.subspan(std::min(versions.size(), kMaxDeleted))) {
    const auto part = versions.first(std::min(versions.size(), kMaxDeleted));
    if (auto kept = remove_some_versions(part)) {
      std::ranges::move(*kept, std::back_inserter(out));
      continue;
    }
    for (const VersionName& version : part) {
      const S3Reply reply = requests_.perform({"DELETE", version.key, query_of(version), {}, {}});
      if (is_refusal(reply.response) && reply.response.status != 404) {
        out.push_back(version);
      } else {
        requests_.require_status(reply, version.key, {200, 204, 404});
      }
    }
  }
  return out;
}

std::optional<ServerTime> S3Engine::locked_until(const VersionName& version) {
  require_good_key(version.key);
  NameValues query = query_of(version);
  query.emplace_back("retention", "");
  const S3Reply reply = requests_.perform({"GET", version.key, query, {}, {}});
  if (reply.error.code == "NoSuchObjectLockConfiguration" ||
      reply.error.code == "ObjectLockConfigurationNotFoundError") {
    return std::nullopt;
  }
  requests_.require_status(reply, version.key, {200});
  S3Retention retention;
  if (!parse_s3_retention(reply.response.body, retention)) {
    fail(Errc::corrupted, "{}: the server's reply about its lock does not parse",
         requests_.name(version.key));
  }
  // In governance mode, some credentials remove the version before.
  if (retention.mode != "COMPLIANCE") return std::nullopt;
  return retention.until;
}

void S3Engine::lock_until(const VersionName& version, ServerTime time) {
  require_good_key(version.key);
  NameValues query = query_of(version);
  query.emplace_back("retention", "");
  const std::string body = s3_retention("COMPLIANCE", time);
  requests_.require_status(
      requests_.perform({"PUT", version.key, query, {}, std::as_bytes(std::span(body))}),
      version.key, {200, 204});
}

}  // namespace

std::unique_ptr<VersionedObjects> make_s3_engine(S3Options options) {
  return std::make_unique<S3Engine>(std::move(options));
}

// A certificate for *.s3.REGION.amazonaws.com is not valid for a bucket with a dot.
bool uses_path_addressing(const RemoteUrl& url, bool own_endpoint) {
  if (url.addressing != RemoteUrl::Addressing::automatic) {
    return url.addressing == RemoteUrl::Addressing::path;
  }
  return own_endpoint || url.bucket.find('.') != std::string::npos;
}

std::unique_ptr<ObjectStore> open_s3(const RemoteUrl& url, std::chrono::milliseconds timeout,
                                     std::size_t connections) {
  const AwsSettings settings = find_aws_settings(url, process_environment());
  S3Options options;
  options.url = url.text;
  options.timeout = timeout;
  if (connections != 0) options.http.connections = connections;
  for (auto* limit : {&options.http.connect_timeout, &options.http.stall_timeout}) {
    *limit = std::min(*limit, timeout);
  }
  options.bucket = url.bucket;
  options.prefix = url.prefix;
  options.region = settings.region;
  options.storage_class = url.storage_class;
  options.kms_key = url.kms_key;
  options.credentials = settings.credentials;
  options.read_credentials = [url] {
    return find_aws_settings(url, process_environment()).credentials;
  };
  options.http.ca_bundle = settings.ca_bundle;
  const bool own_endpoint = !settings.endpoint.empty();
  options.endpoint =
      own_endpoint ? settings.endpoint : "https://s3." + settings.region + ".amazonaws.com";
  options.path_addressing = uses_path_addressing(url, own_endpoint);
  if (options.http.ca_bundle.empty() && options.endpoint.starts_with("https://")) {
    options.http.ca_bundle = find_ca_bundle();
  }
  if (!url.at.empty()) {
    return objects_at(make_s3_engine(std::move(options)), *base::parse_utc_time(url.at));
  }
  return make_s3_engine(std::move(options));
}

}  // namespace vellum::remote
