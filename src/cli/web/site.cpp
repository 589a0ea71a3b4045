#include "cli/web/site.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <array>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/bytes/hex.hpp"
#include "base/fail.hpp"
#include "cli/history/markup.hpp"
#include "cli/web/pages/html.hpp"
#include "cli/web/pages/pages.hpp"

namespace vellum::cli {
namespace {

constexpr std::size_t kTokenBytes = 32;

std::string random_token() {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    fail(Errc::unsupported, "no random numbers for a token");
  return base::hex(std::as_bytes(std::span(bytes)));
}

bool is_own_host(const std::string& host, std::uint16_t port) {
  return host == fmt::format("127.0.0.1:{}", port) || host == fmt::format("localhost:{}", port);
}

unsigned status_of(Errc code) {
  if (code == Errc::not_found) return 404;
  return code == Errc::invalid_argument ? 400 : 500;
}

Response plain(unsigned status, std::string text) {
  return {status, "text/plain; charset=utf-8", std::move(text)};
}

Response error_page(unsigned status, const std::string& message) {
  return {status, "text/html; charset=utf-8",
          page_of("Error", fmt::format("<p class=\"error\">{}</p>\n", in_markup(message)))};
}

using MakeContent = Content (*)(const Store&, const Request&);
constexpr std::pair<const char*, MakeContent> kPages[] = {
    {"", versions_page}, {"sizes", sizes_page}, {"version", version_page}, {"diff", diff_page},
    {"heat", heat_page}, {"bytes", bytes_page}, {"blame", blame_page},
};

}  // namespace

Site::Site(Store store) : store_(std::move(store)), token_(random_token()) {}

std::string Site::url(std::uint16_t port) const {
  return fmt::format("http://127.0.0.1:{}/{}/", port, token_);
}

// Takes a time that does not depend on the number of correct characters.
bool Site::knows_token(const std::string& first_of_path) const noexcept {
  return first_of_path.size() == token_.size() &&
         CRYPTO_memcmp(first_of_path.data(), token_.data(), token_.size()) == 0;
}

Response Site::answer(const Request& request, std::uint16_t port) const noexcept {
  try {
    if (!is_own_host(request.host, port)) return plain(403, "This is another host.\n");
    const std::size_t slash = request.path.find('/', 1);
    if (slash == std::string::npos || !knows_token(request.path.substr(1, slash - 1)))
      return plain(404, "There is nothing here.\n");
    if (request.method != "GET" && request.method != "HEAD")
      return plain(405, "Only GET and HEAD.\n");
    return answer_page(request.path.substr(slash + 1), request);
  } catch (const std::exception&) {  // no memory for a page
    return plain(500, "");
  }
}

Response Site::answer_page(const std::string& page, const Request& request) const {
  if (page == "style.css") return {200, "text/css", std::string(style_sheet())};
  try {
    if (page == "download") return download(store_, request);
    for (const auto& [name, content_of] : kPages) {
      if (page != name) continue;
      const Content content = content_of(store_, request);
      return {200, "text/html; charset=utf-8", page_of(content.title, content.markup)};
    }
  } catch (const Error& error) {
    return error_page(status_of(error.code()), error.what());
  }
  return error_page(404, "There is no such page.");
}

}  // namespace vellum::cli
