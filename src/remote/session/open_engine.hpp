// remote/session/open_engine.hpp: the engine for a URL.
#pragma once

#include <memory>
#include <string>

#include "base/files/file.hpp"
#include "remote/engine/limited_objects.hpp"
#include "remote/engine/remote_timeout.hpp"

namespace vellum::remote {

// Opens the engine for the URL (remote/engine/url.hpp). A directory is accessed by `fs`. Makes no
// request. Requests to an unresponsive server are retried for at most `wait`.
// Errc::invalid_argument: the URL is malformed, or no credentials are found; unsupported: this
// build has no S3.
std::unique_ptr<ObjectStore> open_object_store(base::Fs& fs, const std::string& url,
                                               std::chrono::milliseconds wait = remote_timeout(),
                                               const TransferLimits& limits = {});

// The same, opened by the first request, which may throw the errors of open_object_store().
std::shared_ptr<ObjectStore> open_object_store_later(base::Fs& fs, const std::string& url,
                                                     std::chrono::milliseconds wait);

}  // namespace vellum::remote
