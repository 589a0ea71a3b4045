// remote/s3/s3_replies.hpp: S3's XML: parsers of replies, and the one request that has a body of
// XML. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remote/engine/object_store.hpp"

namespace vellum::remote {

struct S3Error {
  std::string code, message;  // empty: not a reply of S3
};
S3Error parse_s3_error(std::span<const std::byte> xml);

struct S3Listing {
  std::vector<ObjectInfo> objects;  // with their full keys in the bucket
  std::string next;                 // the token of the next request; empty: the listing is complete
};
// False: not a listing. Allocates only in proportion to the reply.
bool parse_s3_listing(std::span<const std::byte> xml, S3Listing& out);

// The body of a request that deletes these objects, with their full keys in the bucket.
std::string s3_deletion(std::span<const std::string> keys);
// The keys that the server has not deleted. False: not a reply to such a request.
bool parse_s3_deletion(std::span<const std::byte> xml, std::vector<std::string>& kept);

}  // namespace vellum::remote
