// cli/web/no_server.cpp: for builds without libmicrohttpd.
#include "base/fail.hpp"
#include "cli/web/server.hpp"

namespace vellum::cli {

struct Server::Impl {};

Server::Server(const Site&, std::uint16_t) {
  fail(Errc::unsupported, "this vellum was built without libmicrohttpd: it serves no pages");
}
Server::~Server() = default;
std::uint16_t Server::port() const noexcept { return 0; }

}  // namespace vellum::cli
