// remote/s3/s3_requests.hpp: requests to one bucket: signed, retried while their failure is
// transient, with errors that name the object.
//
// Threads: all calls from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <random>
#include <span>
#include <string>

#include "remote/s3/http_client.hpp"
#include "remote/s3/s3_replies.hpp"
#include "remote/s3/sigv4.hpp"

namespace vellum::remote {

struct S3Options {
  std::string url;       // for messages
  std::string endpoint;  // "https://host:port"
  std::string bucket, prefix;
  std::string region;
  bool path_addressing = true;
  std::string storage_class, kms_key;  // as in RemoteUrl
  Credentials credentials;
  // Returns the current credentials, for those that expire; null: `credentials` are permanent.
  std::function<Credentials()> read_credentials;
  std::chrono::seconds credentials_age{60};  // after this time they are read again
  HttpOptions http;
  int attempts = INT32_MAX;                   // for one request
  std::chrono::milliseconds timeout{60'000};  // no attempt begins after it, and no pause exceeds it
  // The pause before attempt n + 1 is random, up to min(first_pause * 2^(n-1), max_pause), and at
  // least the server's Retry-After.
  std::chrono::milliseconds first_pause{50}, max_pause{5'000};
};

inline constexpr std::uint64_t kMaxS3ReplyBytes = 16u << 20;  // of a listing or an error

struct S3Call {
  std::string method;
  std::string key;  // empty: the bucket
  NameValues query;
  NameValues headers;
  std::span<const std::byte> body;
  std::uint64_t limit_bytes = kMaxS3ReplyBytes;
  // The lock that a PUT gives its object; 0: none. Each attempt counts it from the server's time, as
  // far as that is known then.
  std::chrono::seconds lock{0};
};

struct S3Reply {
  std::string permission;  // in a policy, that the request needs
  HttpResponse response;
  S3Error error;
  // An earlier attempt may have succeeded although its reply was an error.
  bool is_repeated = false;
};

// The server understands the request, and refuses it.
bool is_refusal(const HttpResponse& response);

class S3Requests {
 public:
  explicit S3Requests(S3Options options);

  const S3Options& options() const noexcept { return options_; }
  // For messages.
  std::string name(const std::string& key) const {
    return key.empty() ? options_.url : options_.url + ": " + key;
  }
  std::string in_bucket(const std::string& key) const {
    return options_.prefix.empty() ? key : options_.prefix + "/" + key;
  }

  // Sends the request and retries it while its failure is transient.
  S3Reply perform(const S3Call& call);
  // Throws the reply's error unless it has one of these statuses.
  void require_status(const S3Reply& reply, const std::string& key,
                      std::initializer_list<long> expected) const;
  // The server's time, as far as a reply has shown that this machine's differs.
  std::chrono::system_clock::time_point now() const;
  // Fails all requests, current and later ones.
  void stop() noexcept;

 private:
  std::string path_of(const S3Call& call) const;
  void add_body_headers(const S3Call& call, NameValues& headers) const;
  HttpResponse send(const S3Call& call, const Credentials& credentials, bool connects_anew);
  bool pause(std::chrono::milliseconds time);
  Credentials current_credentials();
  bool are_credentials_renewed(const Credentials& refused);
  void read_credentials();
  bool is_transient(const S3Reply& reply);
  bool adopt_server_time(const HttpResponse& response);
  std::chrono::milliseconds pause_after(int attempt);

  const S3Options options_;
  std::string scheme_, authority_;
  HttpClient http_;
  std::atomic<std::int64_t> clock_ahead_s_{0};
  std::mutex credentials_mutex_;  // guards the next two
  Credentials credentials_;
  std::chrono::steady_clock::time_point credentials_read_ = std::chrono::steady_clock::now();
  std::condition_variable wakes_;
  std::mutex mutex_;  // guards the members below
  bool stopped_ = false;
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace vellum::remote
