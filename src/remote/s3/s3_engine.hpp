// remote/s3/s3_engine.hpp: objects in an S3 bucket.
//
// Requests are signed (remote/s3/sigv4.hpp). The signature includes the hash of the body, so a
// server detects a body that was damaged in transit. A request with a transient failure is retried
// after a random pause. Retries are safe: an object is written completely or not at all. If the
// reply to a conditional PUT is lost and the retry is refused, the object is read back and
// compared. For that, objects that others may create concurrently contain random bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "remote/engine/object_store.hpp"
#include "remote/engine/url.hpp"
#include "remote/s3/http_client.hpp"
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

std::unique_ptr<ObjectStore> make_s3_engine(S3Options options);

// Whether the bucket is part of the path. `own_endpoint`: the server is not Amazon's.
bool uses_path_addressing(const RemoteUrl& url, bool own_endpoint);

// With the settings of remote/s3/aws_config.hpp. `connections`: 0 for the usual number.
// Errc::unsupported: this build has no S3.
std::unique_ptr<ObjectStore> open_s3(const RemoteUrl& url, std::chrono::milliseconds timeout,
                                     std::size_t connections);

}  // namespace vellum::remote
