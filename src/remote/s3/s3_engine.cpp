#include "remote/s3/s3_engine.hpp"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <random>
#include <set>

#include "base/bytes/hex.hpp"
#include "base/bytes/sha256.hpp"
#include "base/fail.hpp"
#include "base/parse_number.hpp"
#include "base/try_to.hpp"
#include "remote/s3/aws_config.hpp"
#include "remote/s3/libcurl.hpp"
#include "remote/s3/s3_replies.hpp"

namespace vellum::remote {
namespace {

constexpr std::uint64_t kMaxReplyBytes = 16u << 20;   // of a listing or an error
constexpr std::uint64_t kMaxAnswerBytes = 64u << 10;  // of a question, or an error instead
// Amazon charges a smaller object of an infrequent class as if it had this size.
constexpr std::size_t kMinClassBytes = 128u << 10;
constexpr std::size_t kMaxListed = 1000;        // by one request
constexpr std::size_t kMaxListings = 1u << 20;  // of one list()
constexpr std::size_t kMaxDeleted = 1000;       // by one request

std::string amz_time(std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &utc);
  return text;
}

// "Tue, 24 Nov 2026 22:13:40 GMT"; nullopt: another text.
std::optional<std::chrono::system_clock::time_point> parse_http_date(const std::string& text) {
  std::tm utc{};
  const char* const end = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S", &utc);
  if (end == nullptr) return std::nullopt;
  return std::chrono::system_clock::from_time_t(timegm(&utc));
}

struct S3Call {
  std::string method;
  std::string key;  // empty: the bucket
  NameValues query;
  NameValues headers;
  std::span<const std::byte> body;
  std::uint64_t limit_bytes = kMaxReplyBytes;
};

struct S3Reply {
  std::string method;
  HttpResponse response;
  S3Error error;
  // An earlier attempt may have succeeded although its reply was an error.
  bool is_repeated = false;
};

// "120" or a date; nullopt: neither.
std::optional<std::chrono::milliseconds> parse_retry_after(const std::string& text) {
  if (const auto seconds = base::parse_number<std::uint32_t>(text)) {
    return std::chrono::seconds(*seconds);
  }
  const auto date = parse_http_date(text);
  if (!date.has_value()) return std::nullopt;
  return std::chrono::ceil<std::chrono::milliseconds>(*date - std::chrono::system_clock::now());
}

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < count ? std::to_integer<std::uint32_t>(bytes[at + i]) : 0);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      out.push_back(i <= count ? kDigits[bits >> (18 - 6 * i) & 63] : '=');
    }
  }
  return out;
}

// The permission's name in a policy.
const char* permission_of(const std::string& method, bool is_listing) {
  if (is_listing) return "s3:ListBucket";
  if (method == "PUT") return "s3:PutObject";
  return method == "DELETE" ? "s3:DeleteObject" : "s3:GetObject";
}

class S3Engine final : public ObjectStore {
 public:
  explicit S3Engine(S3Options options)
      : options_(std::move(options)), http_(options_.http), credentials_(options_.credentials) {
    const std::size_t host = options_.endpoint.find("//") + 2;
    assert(options_.endpoint.find("//") != std::string::npos);
    assert(options_.attempts > 0 && options_.http.connections > 0);
    scheme_ = options_.endpoint.substr(0, host);
    authority_ = options_.endpoint.substr(host);
    // libcurl omits the default port of the scheme.
    const std::string implied = scheme_ == "http://" ? ":80" : ":443";
    if (authority_.ends_with(implied)) authority_.resize(authority_.size() - implied.size());
    if (!options_.path_addressing) authority_ = options_.bucket + "." + authority_;
  }

  const std::string& url() const noexcept override { return options_.url; }
  std::size_t connections() const noexcept override { return options_.http.connections; }

  std::vector<std::byte> get(const std::string& key, std::uint64_t limit_bytes) override {
    require_good_key(key);
    S3Reply reply = perform({"GET", key, {}, {}, {}, std::max(limit_bytes, kMaxReplyBytes)});
    auto& body = reply.response.body;
    if (reply.response.too_large || (reply.response.status == 200 && body.size() > limit_bytes)) {
      fail(Errc::corrupted, "{}: more than the {} bytes that are expected", name(key), limit_bytes);
    }
    require_status(reply, key, {200});
    return std::move(body);
  }

  std::vector<std::byte> get_range(const std::string& key, ObjectRange range) override {
    require_good_key(key);
    if (range.length_bytes == 0) return {};
    const std::uint64_t last = range.offset_bytes + range.length_bytes - 1;
    S3Reply reply = perform_range(key, range);
    if (reply.response.status == 416 ||
        (reply.response.status == 206 && reply.response.body.size() != range.length_bytes)) {
      fail(Errc::corrupted, "{}: does not have the bytes {} to {} that are expected", name(key),
           range.offset_bytes, last);
    }
    require_status(reply, key, {206});
    return std::move(reply.response.body);
  }

  std::vector<std::byte> get_start(const std::string& key, std::uint64_t most_bytes) override {
    require_good_key(key);
    if (most_bytes == 0) return {};
    S3Reply reply = perform_range(key, {0, most_bytes});
    if (reply.response.status == 416) return {};  // an empty object has no range
    const bool fits = reply.response.body.size() <= most_bytes;
    if (reply.response.status == 206 && !fits) {
      fail(Errc::corrupted, "{}: more than the {} bytes that were asked for", name(key),
           most_bytes);
    }
    // A server may send a shorter object as a whole.
    const bool is_whole = reply.response.status == 200 && fits && !reply.response.too_large;
    if (!is_whole) require_status(reply, key, {206});
    return std::move(reply.response.body);
  }

  // The last byte, and the one behind it: a shorter object has neither, and a longer one both. A
  // server that ignores ranges, or does not give out an archived object, lists it.
  bool has(const std::string& key, std::uint64_t size_bytes) override {
    require_good_key(key);
    assert(size_bytes > 0);
    const HttpResponse response = perform_range(key, {size_bytes - 1, 2}, kMaxAnswerBytes).response;
    if (response.status == 404 || response.status == 416) return false;
    if (response.status == 206 && response.body.size() <= 2) return response.body.size() == 1;
    const std::vector<ObjectInfo> listed = list(key, 1);
    return !listed.empty() && listed.front() == ObjectInfo{key, size_bytes};
  }

  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    require_good_key(key);
    const S3Reply reply = perform({"PUT", key, {}, {{"if-none-match", "*"}}, bytes});
    if (reply.response.status == 412) return reply.is_repeated && has_content(key, bytes);
    require_status(reply, key, {200, 201, 204});
    return true;
  }

  void put(const std::string& key, std::span<const std::byte> bytes) override {
    require_good_key(key);
    require_status(perform({"PUT", key, {}, {}, bytes}), key, {200, 201, 204});
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
        fail(Errc::io, "{}: the server's listing repeats itself, and has no end", options_.url);
      }
      if (!listing.objects.empty()) last = listing.objects.back().key;
    }
    if (out.size() > most) out.resize(most);
    return out;
  }

  void stop() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    wakes_.notify_all();
    http_.stop();
  }

  void remove(const std::string& key) override {
    require_good_key(key);
    require_status(perform({"DELETE", key, {}, {}, {}}), key, {200, 204, 404});
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

 private:
  std::string name(const std::string& key) const {
    return key.empty() ? options_.url : options_.url + ": " + key;
  }
  std::string in_bucket(const std::string& key) const {
    return options_.prefix.empty() ? key : options_.prefix + "/" + key;
  }

  S3Reply perform_range(const std::string& key, const ObjectRange& range,
                        std::uint64_t most_bytes = kMaxReplyBytes) {
    assert(range.length_bytes > 0);
    const std::uint64_t last = range.offset_bytes + range.length_bytes - 1;
    return perform({"GET",
                    key,
                    {},
                    {{"range", fmt::format("bytes={}-{}", range.offset_bytes, last)}},
                    {},
                    std::max(range.length_bytes, most_bytes)});
  }

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
    call.query.emplace_back("prefix", in_bucket(prefix));
    call.query.emplace_back("max-keys", std::to_string(std::min(most, kMaxListed)));
    if (!token.empty()) call.query.emplace_back("continuation-token", token);
    const S3Reply reply = perform(call);
    require_status(reply, "", {200});
    S3Listing out;
    if (!parse_s3_listing(reply.response.body, out)) {
      fail(Errc::io, "{}: the server's listing does not parse", options_.url);
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
      full.push_back(in_bucket(key));
    }
    const std::string body = s3_deletion(full);
    const S3Reply reply =
        perform({"POST", "", {{"delete", ""}}, {}, std::as_bytes(std::span(body))});
    if (is_refusal(reply.response) || reply.response.status == 501) {
      deletes_many_ = false;
      return left;
    }
    require_status(reply, "", {200});
    std::vector<std::string> kept;
    if (!parse_s3_deletion(reply.response.body, kept)) return left;
    std::erase_if(left, [&](const std::string& key) {
      return std::ranges::find(kept, in_bucket(key)) == kept.end();
    });
    return left;
  }

  // Skips objects that are not Vellum's.
  void add(const ObjectInfo& object, const std::string& prefix,
           std::vector<ObjectInfo>& out) const {
    const std::string start = options_.prefix.empty() ? "" : options_.prefix + "/";
    if (!object.key.starts_with(start)) return;
    std::string key = object.key.substr(start.size());
    if (key.starts_with(prefix) && is_good_key(key))
      out.push_back({std::move(key), object.size_bytes});
  }

  std::string path_of(const S3Call& call) const {
    std::string path = options_.path_addressing ? "/" + options_.bucket : "";
    if (!call.key.empty() || path.empty()) {
      path += "/" + (call.key.empty() ? "" : uri_encoded(in_bucket(call.key), true));
    }
    return path;
  }

  void add_body_headers(const S3Call& call, NameValues& headers) const {
    // A bucket with object lock refuses an object without it, and Amazon a deletion.
    headers.emplace_back("x-amz-checksum-sha256", base64(base::sha256(call.body)));
    if (call.method != "PUT") return;
    if (!options_.storage_class.empty() && call.body.size() >= kMinClassBytes) {
      headers.emplace_back("x-amz-storage-class", options_.storage_class);
    }
    if (options_.kms_key.empty()) return;
    headers.emplace_back("x-amz-server-side-encryption", "aws:kms");
    headers.emplace_back("x-amz-server-side-encryption-aws-kms-key-id", options_.kms_key);
  }

  HttpResponse send(const S3Call& call, const Credentials& credentials, bool connects_anew) {
    const auto now = std::chrono::system_clock::now() + std::chrono::seconds(clock_ahead_s_.load());
    const std::string time = amz_time(now);
    RequestToSign to_sign{call.method, path_of(call), call.query, call.headers,
                          base::hex(base::sha256(call.body))};
    to_sign.headers.emplace_back("x-amz-content-sha256", to_sign.payload_hash);
    if (!call.body.empty() || call.method == "PUT") add_body_headers(call, to_sign.headers);
    to_sign.headers.emplace_back("x-amz-date", time);
    if (!credentials.session_token.empty()) {
      to_sign.headers.emplace_back("x-amz-security-token", credentials.session_token);
    }
    HttpRequest request{call.method,      scheme_ + authority_ + to_sign.path,
                        to_sign.headers,  call.body,
                        call.limit_bytes, connects_anew};
    if (!call.query.empty()) request.url += "?" + canonical_query(call.query);
    to_sign.headers.emplace_back("host", authority_);
    request.headers.emplace_back("authorization",
                                 sign(to_sign, {options_.region, "s3", time}, credentials));
    return http_.perform(request);
  }

  // Sends the request and retries it while its failure is transient.
  S3Reply perform(const S3Call& call) {
    S3Reply reply;
    reply.method = call.method;
    const auto until = std::chrono::steady_clock::now() + options_.timeout;
    for (int attempt = 1;; ++attempt) {
      const Credentials credentials = current_credentials();
      reply.response = send(call, credentials, !reply.response.failure.empty());
      reply.error = {};
      if (reply.response.status >= 300) reply.error = parse_s3_error(reply.response.body);
      if (attempt >= options_.attempts || std::chrono::steady_clock::now() >= until) return reply;
      if (are_credentials_refused(reply) && are_credentials_renewed(credentials)) continue;
      if (!is_transient(reply)) return reply;
      reply.is_repeated |= may_have_been_applied(reply);
      const auto time = std::max(pause_after(attempt), requested_pause(reply.response));
      if (std::chrono::steady_clock::now() + time >= until || !pause(time)) return reply;
    }
  }

  // False: stop() was called.
  bool pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return !wakes_.wait_for(lock, time, [&] { return stopped_; });
  }

  static std::chrono::milliseconds requested_pause(const HttpResponse& response) {
    const auto header = response.headers.find("retry-after");
    if (header == response.headers.end()) return std::chrono::milliseconds(0);
    return parse_retry_after(header->second).value_or(std::chrono::milliseconds(0));
  }

  // Reads them again periodically: a helper renews credentials before they expire.
  Credentials current_credentials() {
    const std::lock_guard lock(credentials_mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (options_.read_credentials && now - credentials_read_ >= options_.credentials_age) {
      read_credentials();
    }
    return credentials_;
  }

  static bool are_credentials_refused(const S3Reply& reply) {
    const auto& code = reply.error.code;
    return code == "ExpiredToken" || code == "InvalidToken" || code == "TokenRefreshRequired" ||
           code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch" ||
           code == "AccessDenied" || code == "RequestExpired";
  }

  // Whether the current credentials differ from the refused ones.
  bool are_credentials_renewed(const Credentials& refused) {
    const std::lock_guard lock(credentials_mutex_);
    if (options_.read_credentials && credentials_ == refused) read_credentials();
    return !(credentials_ == refused);
  }

  // Keeps the old ones if they cannot be read. REQUIRES: credentials_mutex_ is held.
  void read_credentials() {
    base::try_to([&] { credentials_ = options_.read_credentials(); });
    credentials_read_ = std::chrono::steady_clock::now();
  }

  bool is_transient(const S3Reply& reply) {
    const HttpResponse& response = reply.response;
    if (response.too_large || response.untrusted || response.stopped) return false;
    if (!response.failure.empty()) return true;
    if (reply.error.code == "RequestTimeTooSkewed") return adopt_server_time(response);
    if (response.status == 501) return false;
    for (const char* code : {"RequestTimeout", "XAmzContentSHA256Mismatch", "BadDigest",
                             "IncompleteBody", "ConditionalRequestConflict", "OperationAborted"}) {
      if (reply.error.code == code) return true;
    }
    return response.status >= 500 || response.status == 429 || response.status == 408;
  }

  static bool may_have_been_applied(const S3Reply& reply) {
    return !reply.response.failure.empty() || reply.response.status >= 500;
  }

  // Signs with the server's time from now on. False: the reply has no date.
  bool adopt_server_time(const HttpResponse& response) {
    const auto date = response.headers.find("date");
    if (date == response.headers.end()) return false;
    const auto time = parse_http_date(date->second);
    if (!time.has_value()) return false;
    const auto ahead =
        std::chrono::duration_cast<std::chrono::seconds>(*time - std::chrono::system_clock::now());
    clock_ahead_s_.store(ahead.count());
    return true;
  }

  std::chrono::milliseconds pause_after(int attempt) {
    const auto longest =
        std::min(options_.max_pause, options_.first_pause * (1 << std::min(attempt - 1, 16)));
    const std::lock_guard lock(mutex_);
    return std::chrono::milliseconds(
        std::uniform_int_distribution<std::int64_t>(0, longest.count())(random_));
  }

  void require_status(const S3Reply& reply, const std::string& key,
                      std::initializer_list<long> expected) const {
    const HttpResponse& response = reply.response;
    if (!response.failure.empty()) fail(Errc::io, "{}: {}", name(key), response.failure);
    if (std::find(expected.begin(), expected.end(), response.status) != expected.end()) return;
    const S3Error& error = reply.error;
    std::string reason = fmt::format("HTTP status {}", response.status);
    if (!error.code.empty()) reason += " (" + error.code + ")";
    if (!error.message.empty()) reason += ": " + error.message;
    if (response.status == 403 && (error.code == "AccessDenied" || error.code.empty())) {
      reason +=
          fmt::format(" (does the policy grant {}?)", permission_of(reply.method, key.empty()));
    }
    const std::string text = name(key) + ": " + reason;
    const Errc code = code_of(response.status, error);
    if (code == Errc::io && is_refusal(response)) throw RefusedRequest(code, text);
    throw Error(code, text);
  }

  static bool is_refusal(const HttpResponse& response) {
    return response.failure.empty() && response.status >= 400 && response.status < 500 &&
           response.status != 429 && response.status != 408;
  }

  static Errc code_of(long status, const S3Error& error) {
    if (status == 404) return Errc::not_found;
    if (status == 501) return Errc::unsupported;
    if (status == 507 || error.code == "QuotaExceeded") return Errc::no_space;
    return Errc::io;
  }

  const S3Options options_;
  std::string scheme_, authority_;
  HttpClient http_;
  std::atomic<std::int64_t> clock_ahead_s_{0};
  std::atomic<bool> deletes_many_{true};  // false: the server has refused such a request
  std::mutex credentials_mutex_;          // guards the next two
  Credentials credentials_;
  std::chrono::steady_clock::time_point credentials_read_ = std::chrono::steady_clock::now();
  std::condition_variable wakes_;
  std::mutex mutex_;  // guards the members below
  bool stopped_ = false;
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace

std::unique_ptr<ObjectStore> make_s3_engine(S3Options options) {
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
  return make_s3_engine(std::move(options));
}

}  // namespace vellum::remote
