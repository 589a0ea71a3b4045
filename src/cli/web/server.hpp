// cli/web/server.hpp: a site on a port of the loopback interface, with GNU libmicrohttpd.
#pragma once

#include <cstdint>
#include <memory>

#include "cli/web/site.hpp"

namespace vellum::cli {

// Serves requests in a separate thread, in sequence, until it is destroyed.
class Server {
 public:
  // `port` of 127.0.0.1; 0: any that is free. Throws Errc::io, and Errc::unsupported in a build
  // without the library. `site` must outlive it.
  Server(const Site& site, std::uint16_t port);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::cli
