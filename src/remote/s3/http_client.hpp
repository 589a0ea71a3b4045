// remote/s3/http_client.hpp: HTTP/1.1 requests over many connections, by libcurl's multi
// interface.
//
// One thread drives all transfers. It starts with the first request. Connections are kept and used
// again. TLS certificates and host names are always verified. Redirects are not followed: a
// signature holds for one host.
//
// Threads: perform() from any thread; it returns when its own request is done.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "remote/s3/sigv4.hpp"

namespace vellum::remote {

struct HttpOptions {
  std::size_t connections = 32;
  std::chrono::milliseconds connect_timeout{10'000};
  // A transfer that makes no progress for so long has failed.
  std::chrono::milliseconds stall_timeout{20'000};
  std::string ca_bundle;  // a file; empty: as libcurl finds it
};

struct HttpRequest {
  std::string method;  // GET, PUT, DELETE
  std::string url;
  NameValues headers;
  std::span<const std::byte> body;  // REQUIRES: lives until perform() returns
  std::uint64_t limit_bytes = 0;    // of the response's body
};

struct HttpResponse {
  std::string failure;     // why there is no response, or not all of one; empty: there is
  bool too_large = false;  // the body has more than limit_bytes
  bool stopped = false;    // by HttpClient::stop()
  bool untrusted = false;  // no authority vouches for the server, or there are none
  long status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::vector<std::byte> body;
};

class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  HttpResponse perform(const HttpRequest& request);
  // Ends all requests, those under way and later ones.
  void stop() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::remote
