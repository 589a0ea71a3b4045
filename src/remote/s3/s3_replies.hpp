// remote/s3/s3_replies.hpp: the little XML that S3 answers with. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remote/engine/object_store.hpp"

namespace vellum::remote {

struct S3Error {
  std::string code, message;  // empty: the reply is none of S3's
};
S3Error parse_s3_error(std::span<const std::byte> xml);

struct S3Listing {
  std::vector<ObjectInfo> objects;  // with the whole keys of the bucket
  std::string next;                 // the token for the rest; empty: there is none
};
// False: the reply is no listing. Allocates only in proportion to the reply.
bool parse_s3_listing(std::span<const std::byte> xml, S3Listing& out);

}  // namespace vellum::remote
