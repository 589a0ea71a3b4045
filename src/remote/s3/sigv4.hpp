// remote/s3/sigv4.hpp: AWS's Signature Version 4 of a request, by OpenSSL's HMAC.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace vellum::remote {

struct Credentials {
  std::string access_key_id, secret_access_key;
  std::string session_token;  // empty: none
  bool operator==(const Credentials&) const = default;
};

using NameValues = std::vector<std::pair<std::string, std::string>>;

struct SigningScope {
  std::string region, service;
  std::string time;  // "20150830T123600Z"
};

struct RequestToSign {
  std::string method;
  std::string path;          // as sent: percent-encoded, with a leading slash
  NameValues query;          // neither encoded nor sorted
  NameValues headers;        // all signed headers, in any order; names in any case
  std::string payload_hash;  // lower-case hexadecimal SHA-256, as in x-amz-content-sha256
};

// "%41" for every byte except letters, digits and "-._~"; slashes stay if `keep_slashes`.
std::string uri_encoded(const std::string& text, bool keep_slashes);
// "a=b&c=d", encoded and sorted: the form that is both signed and sent.
std::string canonical_query(const NameValues& query);

// The value of the Authorization header.
std::string sign(const RequestToSign& request, const SigningScope& scope,
                 const Credentials& credentials);

}  // namespace vellum::remote
