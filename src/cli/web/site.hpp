// cli/web/site.hpp: answers requests about one store that have the site's token.
#pragma once

#include <cstdint>
#include <string>

#include <vellum/store.hpp>

#include "cli/web/pages/request.hpp"

namespace vellum::cli {

class Site {
 public:
  // A token of 256 random bits.
  explicit Site(Store store);

  const std::string& token() const noexcept { return token_; }
  // The URL for the user. `port`: of 127.0.0.1.
  std::string url(std::uint16_t port) const;

  // Never throws. Without the token the answer is always 404; with another Host than the loopback
  // and `port` it is 403, because another host name may be an attacker's (DNS rebinding).
  Response answer(const Request& request, std::uint16_t port) const noexcept;

 private:
  bool knows_token(const std::string& first_of_path) const noexcept;
  Response answer_page(const std::string& page, const Request& request) const;
  Store store_;
  std::string token_;
};

}  // namespace vellum::cli
