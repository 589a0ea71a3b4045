#include "remote/s3/s3_requests.hpp"

#include <time.h>

#include <algorithm>
#include <cassert>

#include "base/bytes/hex.hpp"
#include "base/bytes/sha256.hpp"
#include "base/fail.hpp"
#include "base/parse_number.hpp"
#include "base/try_to.hpp"
#include "base/utc_time.hpp"

namespace vellum::remote {
namespace {

// Amazon charges a smaller object of an infrequent class as if it had this size.
constexpr std::size_t kMinClassBytes = 128u << 10;

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

// The permission that a request needs, as a policy names it.
std::string permission_for(const S3Call& call) {
  const auto asks = [&](const char* what) {
    return std::ranges::any_of(call.query, [&](const auto& item) { return item.first == what; });
  };
  if (asks("versions")) return "s3:ListBucketVersions";
  if (asks("versioning")) return "s3:GetBucketVersioning";
  if (asks("object-lock")) return "s3:GetBucketObjectLockConfiguration";
  if (asks("retention")) {
    return call.method == "PUT" ? "s3:PutObjectRetention" : "s3:GetObjectRetention";
  }
  if (call.key.empty() && call.method == "GET") return "s3:ListBucket";
  const std::string version = asks("versionId") ? "Version" : "";
  if (call.method == "PUT") return "s3:PutObject";
  return (call.method == "GET" ? "s3:GetObject" : "s3:DeleteObject") + version;
}

std::chrono::milliseconds requested_pause(const HttpResponse& response) {
  const auto header = response.headers.find("retry-after");
  if (header == response.headers.end()) return std::chrono::milliseconds(0);
  return parse_retry_after(header->second).value_or(std::chrono::milliseconds(0));
}

bool are_credentials_refused(const S3Reply& reply) {
  const auto& code = reply.error.code;
  return code == "ExpiredToken" || code == "InvalidToken" || code == "TokenRefreshRequired" ||
         code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch" ||
         code == "AccessDenied" || code == "RequestExpired";
}

bool may_have_been_applied(const S3Reply& reply) {
  return !reply.response.failure.empty() || reply.response.status >= 500;
}

Errc code_of(long status, const S3Error& error) {
  if (status == 404) return Errc::not_found;
  if (status == 501) return Errc::unsupported;
  if (status == 507 || error.code == "QuotaExceeded") return Errc::no_space;
  return Errc::io;
}

}  // namespace

bool is_refusal(const HttpResponse& response) {
  return response.failure.empty() && response.status >= 400 && response.status < 500 &&
         response.status != 429 && response.status != 408;
}

S3Requests::S3Requests(S3Options options)
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

std::string S3Requests::path_of(const S3Call& call) const {
  std::string path = options_.path_addressing ? "/" + options_.bucket : "";
  if (!call.key.empty() || path.empty()) {
    path += "/" + (call.key.empty() ? "" : uri_encoded(in_bucket(call.key), true));
  }
  return path;
}

void S3Requests::add_body_headers(const S3Call& call, NameValues& headers) const {
  // A bucket with object lock refuses an object without it, and Amazon a deletion.
  headers.emplace_back("x-amz-checksum-sha256", base64(base::sha256(call.body)));
  if (call.method != "PUT" || !call.query.empty()) return;
  if (!options_.storage_class.empty() && call.body.size() >= kMinClassBytes) {
    headers.emplace_back("x-amz-storage-class", options_.storage_class);
  }
  if (options_.kms_key.empty()) return;
  headers.emplace_back("x-amz-server-side-encryption", "aws:kms");
  headers.emplace_back("x-amz-server-side-encryption-aws-kms-key-id", options_.kms_key);
}

HttpResponse S3Requests::send(const S3Call& call, const Credentials& credentials,
                              bool connects_anew) {
  const std::string time = amz_time(now());
  RequestToSign to_sign{call.method, path_of(call), call.query, call.headers,
                        base::hex(base::sha256(call.body))};
  to_sign.headers.emplace_back("x-amz-content-sha256", to_sign.payload_hash);
  if (!call.body.empty() || call.method == "PUT") add_body_headers(call, to_sign.headers);
  if (call.lock.count() != 0) {
    to_sign.headers.emplace_back("x-amz-object-lock-mode", "COMPLIANCE");
    to_sign.headers.emplace_back("x-amz-object-lock-retain-until-date",
                                 base::utc_seconds(now() + call.lock));
  }
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
S3Reply S3Requests::perform(const S3Call& call) {
  S3Reply reply;
  reply.permission = permission_for(call);
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
bool S3Requests::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !wakes_.wait_for(lock, time, [&] { return stopped_; });
}

// Reads them again periodically: a helper renews credentials before they expire.
Credentials S3Requests::current_credentials() {
  const std::lock_guard lock(credentials_mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (options_.read_credentials && now - credentials_read_ >= options_.credentials_age) {
    read_credentials();
  }
  return credentials_;
}

// Whether the current credentials differ from the refused ones.
bool S3Requests::are_credentials_renewed(const Credentials& refused) {
  const std::lock_guard lock(credentials_mutex_);
  if (options_.read_credentials && credentials_ == refused) read_credentials();
  return !(credentials_ == refused);
}

// Keeps the old ones if they cannot be read. REQUIRES: credentials_mutex_ is held.
void S3Requests::read_credentials() {
  base::try_to([&] { credentials_ = options_.read_credentials(); });
  credentials_read_ = std::chrono::steady_clock::now();
}

bool S3Requests::is_transient(const S3Reply& reply) {
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

// Signs with the server's time from now on. False: the reply has no date.
bool S3Requests::adopt_server_time(const HttpResponse& response) {
  const auto date = response.headers.find("date");
  if (date == response.headers.end()) return false;
  const auto time = parse_http_date(date->second);
  if (!time.has_value()) return false;
  const auto ahead =
      std::chrono::duration_cast<std::chrono::seconds>(*time - std::chrono::system_clock::now());
  clock_ahead_s_.store(ahead.count());
  return true;
}

std::chrono::milliseconds S3Requests::pause_after(int attempt) {
  const auto longest =
      std::min(options_.max_pause, options_.first_pause * (1 << std::min(attempt - 1, 16)));
  const std::lock_guard lock(mutex_);
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(0, longest.count())(random_));
}

void S3Requests::require_status(const S3Reply& reply, const std::string& key,
                                std::initializer_list<long> expected) const {
  const HttpResponse& response = reply.response;
  if (!response.failure.empty()) fail(Errc::io, "{}: {}", name(key), response.failure);
  if (std::find(expected.begin(), expected.end(), response.status) != expected.end()) return;
  const S3Error& error = reply.error;
  std::string reason = fmt::format("HTTP status {}", response.status);
  if (!error.code.empty()) reason += " (" + error.code + ")";
  if (!error.message.empty()) reason += ": " + error.message;
  if (response.status == 403 && (error.code == "AccessDenied" || error.code.empty())) {
    reason += fmt::format(" (does the policy grant {}?)", reply.permission);
  }
  const std::string text = name(key) + ": " + reason;
  const Errc code = code_of(response.status, error);
  if (code == Errc::io && is_refusal(response)) throw RefusedRequest(code, text);
  throw Error(code, text);
}

std::chrono::system_clock::time_point S3Requests::now() const {
  return std::chrono::system_clock::now() + std::chrono::seconds(clock_ahead_s_.load());
}

void S3Requests::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wakes_.notify_all();
  http_.stop();
}

}  // namespace vellum::remote
