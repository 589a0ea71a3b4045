// remote/s3/s3_engine.hpp: objects in an S3 bucket.
//
// Requests are signed (remote/s3/sigv4.hpp), with the hash of the body in the signature, so a
// server notices a body that was damaged on the way. A request that fails in a way that may pass is
// repeated after a random pause. Repeating is safe: an object is written whole or not at all. Where
// the reply to a conditional PUT is lost and its repetition is refused, the object is read back and
// compared: the caller puts something random into what others may try to create at the same time.
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
  Credentials credentials;
  // Gives the credentials as they are now, for those that expire; null: they stay.
  std::function<Credentials()> read_credentials;
  std::chrono::seconds credentials_age{60};  // after so long they are read again
  HttpOptions http;
  int attempts = INT32_MAX;                   // of a request
  std::chrono::milliseconds timeout{60'000};  // no attempt begins later, nor waits longer
  // The pause before attempt n + 1 is random, up to this times 2^n, and to `max_pause`; and no
  // shorter than the server asks for.
  std::chrono::milliseconds first_pause{50}, max_pause{5'000};
};

std::unique_ptr<ObjectStore> make_s3_engine(S3Options options);

// Whether the bucket is in the path: `own_endpoint`: the server is not Amazon's.
bool uses_path_addressing(const RemoteUrl& url, bool own_endpoint);

// With the settings that AWS's own tools would use.
std::unique_ptr<ObjectStore> open_s3(const RemoteUrl& url, std::chrono::milliseconds timeout);

}  // namespace vellum::remote
