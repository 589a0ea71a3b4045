// remote/s3/s3_engine.hpp: objects in an S3 bucket.
//
// Requests are signed (remote/s3/sigv4.hpp). The signature includes the hash of the body, so a
// server detects a body that was damaged in transit. A request with a transient failure is retried
// after a random pause. Retries are safe: an object is written completely or not at all. If the
// reply to a conditional PUT is lost and the retry is refused, the object is read back and
// compared. For that, objects that others may create concurrently contain random bytes.
#pragma once

#include <chrono>
#include <memory>

#include "remote/engine/object_versions.hpp"
#include "remote/engine/url.hpp"
#include "remote/s3/s3_requests.hpp"

namespace vellum::remote {

std::unique_ptr<VersionedObjects> make_s3_engine(S3Options options);

// Whether the bucket is part of the path. `own_endpoint`: the server is not Amazon's.
bool uses_path_addressing(const RemoteUrl& url, bool own_endpoint);

// With the settings of remote/s3/aws_config.hpp. `connections`: 0 for the usual number.
// Errc::unsupported: this build has no S3.
std::unique_ptr<ObjectStore> open_s3(const RemoteUrl& url, std::chrono::milliseconds timeout,
                                     std::size_t connections);

}  // namespace vellum::remote
