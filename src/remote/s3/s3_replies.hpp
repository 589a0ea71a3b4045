// remote/s3/s3_replies.hpp: S3's XML: parsers of replies, and the requests that have a body of XML.
// Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remote/engine/object_versions.hpp"

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

struct S3Versions {
  // In the order of the reply, with their full keys in the bucket.
  std::vector<ObjectVersion> versions;
  VersionName next;  // the markers of the next request; an empty key: the listing is complete
};
// False: not a listing of versions. Allocates only in proportion to the reply.
bool parse_s3_versions(std::span<const std::byte> xml, S3Versions& out);

// As for objects, by version.
std::string s3_version_deletion(std::span<const VersionName> versions);
bool parse_s3_version_deletion(std::span<const std::byte> xml, std::vector<VersionName>& kept);

struct S3Retention {
  std::string mode;
  ServerTime until;
};
// False: not a retention.
bool parse_s3_retention(std::span<const std::byte> xml, S3Retention& out);
std::string s3_retention(const std::string& mode, ServerTime until);

// Of the replies about a bucket: whether it keeps versions, or has kept some; whether objects can
// be locked.
bool has_s3_versions(std::span<const std::byte> xml);
bool has_s3_object_lock(std::span<const std::byte> xml);

}  // namespace vellum::remote
