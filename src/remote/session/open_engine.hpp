// remote/session/open_engine.hpp: the engine for a URL.
#pragma once

#include <memory>
#include <string>

#include "base/files/file.hpp"
#include "remote/engine/object_store.hpp"
#include "remote/engine/remote_timeout.hpp"

namespace vellum::remote {

// Opens the engine that the URL names (remote/engine/url.hpp). A directory goes through `fs`. Makes
// no request. Errc::invalid_argument: the URL is malformed, or no credentials are found.
// Errc::unsupported: this build has no S3.
// A server that does not answer is asked again for at most `wait`.
std::unique_ptr<ObjectStore> open_object_store(base::Fs& fs, const std::string& url,
                                               std::chrono::milliseconds wait = remote_timeout());

// The same at the first request, which then throws what open_object_store() does.
std::shared_ptr<ObjectStore> open_object_store_later(base::Fs& fs, const std::string& url,
                                                     std::chrono::milliseconds wait);

}  // namespace vellum::remote
