// remote/s3/http_client.hpp: HTTP/1.1 requests over many connections, by libcurl's multi
// interface.
//
// One thread drives all transfers; the first request starts it. Connections are kept alive and
// reused, also by the next client of the process (remote/s3/kept_multi.hpp). TLS certificates and
// host names are always verified. Redirects are not followed: a signature is valid for one host.
//
// libcurl() is a table of functions, since libcurl is loaded and not linked
// (remote/s3/libcurl.hpp).
//
// Threads: perform() from any thread; it returns when its own request is done.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "remote/s3/http_options.hpp"
#include "remote/s3/sigv4.hpp"

namespace vellum::remote {

struct HttpRequest {
  std::string method;  // GET, PUT, POST, DELETE
  std::string url;
  NameValues headers;
  std::span<const std::byte> body;  // REQUIRES: lives until perform() returns
  std::uint64_t limit_bytes = 0;    // of the response's body
  bool connects_anew = false;       // the open connections may be dead
};

struct HttpResponse {
  std::string failure;     // the reason for a missing or incomplete response; empty: complete
  bool too_large = false;  // the body has more than limit_bytes
  bool stopped = false;    // by HttpClient::stop()
  bool untrusted = false;  // no certificate authority vouches for the server
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
  // Fails all requests, current and later ones.
  void stop() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::remote
