// remote/s3/http_options.hpp: the connections of an HTTP client.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace vellum::remote {

struct HttpOptions {
  std::size_t connections = 32;
  std::chrono::milliseconds connect_timeout{10'000};
  // A transfer without progress for this time fails.
  std::chrono::milliseconds stall_timeout{20'000};
  std::string ca_bundle;  // a file; empty: libcurl's default
  bool operator==(const HttpOptions&) const = default;
};

}  // namespace vellum::remote
