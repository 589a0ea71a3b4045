#include "remote/s3/sigv4.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <map>
#include <string_view>

#include "base/bytes/hex.hpp"
#include "base/bytes/sha256.hpp"
#include "base/fail.hpp"

namespace vellum::remote {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

using Digest = std::array<std::byte, 32>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Digest hmac(std::span<const std::byte> key, std::string_view text) {
  Digest out;
  unsigned length = 0;
  const auto* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                          reinterpret_cast<unsigned char*>(out.data()), &length);
  if (made == nullptr || length != out.size()) fail(Errc::out_of_memory, "HMAC-SHA256 failed");
  return out;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Without leading and trailing spaces, and with single spaces in between.
std::string trimmed(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
    out.push_back(c);
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// Sorted by name; the values of one name are joined by commas, in their order.
using CanonicalHeaders = std::map<std::string, std::string>;

CanonicalHeaders canonical_headers(const NameValues& headers) {
  CanonicalHeaders out;
  for (const auto& [name, value] : headers) {
    const auto [at, fresh] = out.try_emplace(lower(name), trimmed(value));
    if (!fresh) at->second += "," + trimmed(value);
  }
  return out;
}

std::string signed_names(const CanonicalHeaders& headers) {
  std::string out;
  for (const auto& header : headers) out += (out.empty() ? "" : ";") + header.first;
  return out;
}

std::string canonical_request(const RequestToSign& request, const CanonicalHeaders& headers) {
  std::string out =
      request.method + "\n" + request.path + "\n" + canonical_query(request.query) + "\n";
  for (const auto& [name, value] : headers) out += name + ":" + value + "\n";
  return out + "\n" + signed_names(headers) + "\n" + request.payload_hash;
}

Digest signing_key(const SigningScope& scope, const std::string& date, const std::string& secret) {
  const std::string start = "AWS4" + secret;
  Digest key = hmac(bytes_of(start), date);
  for (const std::string_view part :
       {std::string_view(scope.region), std::string_view(scope.service),
        std::string_view("aws4_request")}) {
    key = hmac(key, part);
  }
  return key;
}

}  // namespace

std::string uri_encoded(const std::string& text, bool keep_slashes) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte < 0x80 && std::isalnum(byte) != 0) || c == '-' || c == '.' ||
                       c == '_' || c == '~' || (c == '/' && keep_slashes);
    if (plain) {
      out.push_back(c);
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

std::string canonical_query(const NameValues& query) {
  NameValues encoded;
  for (const auto& [name, value] : query) {
    encoded.emplace_back(uri_encoded(name, false), uri_encoded(value, false));
  }
  std::sort(encoded.begin(), encoded.end());
  std::string out;
  for (const auto& [name, value] : encoded) {
    if (!out.empty()) out += "&";
    out += name;
    out += "=";
    out += value;
  }
  return out;
}

std::string sign(const RequestToSign& request, const SigningScope& scope,
                 const Credentials& credentials) {
  assert(scope.time.size() == std::string_view("20150830T123600Z").size());
  assert(request.path.starts_with("/"));
  const CanonicalHeaders headers = canonical_headers(request.headers);
  const std::string date = scope.time.substr(0, 8);
  const std::string credential_scope =
      date + "/" + scope.region + "/" + scope.service + "/aws4_request";
  const std::string request_text = canonical_request(request, headers);
  const std::string to_sign = std::string(kAlgorithm) + "\n" + scope.time + "\n" +
                              credential_scope + "\n" +
                              base::hex(base::sha256(bytes_of(request_text)));
  const Digest key = signing_key(scope, date, credentials.secret_access_key);
  return fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm,
                     credentials.access_key_id, credential_scope, signed_names(headers),
                     base::hex(hmac(key, to_sign)));
}

}  // namespace vellum::remote
