// remote/engine/url.hpp: the URL of a remote.
//
//   file:///mnt/lustre/x
//   s3://bucket/prefix?endpoint=https://host:port&region=R&profile=P&addressing=path|virtual
//     &storage-class=STANDARD_IA&kms-key=K&at=2026-11-24T10:30:00Z
//
// All parameters after the question mark are optional. Credentials in a URL are refused: it is
// stored in files and printed in messages.
#pragma once

#include <string>

namespace vellum::remote {

struct RemoteUrl {
  enum class EngineKind { directory, s3 };
  enum class Addressing {
    automatic,     // path if an endpoint is given, otherwise virtual_host
    path,          // https://host/bucket/key
    virtual_host,  // https://bucket.host/key
  };
  EngineKind kind = EngineKind::directory;
  std::string text;  // as given
  std::string path;  // of a directory, absolute
  std::string bucket, prefix;
  std::string endpoint;  // with its scheme, without a path; empty: remote/s3/aws_config.hpp
  std::string region, profile;
  Addressing addressing = Addressing::automatic;
  std::string storage_class;  // of large objects; empty: the bucket's default
  std::string kms_key;        // encrypts objects at the server; empty: the bucket's default
  // The remote as it was at this time (base/utc_time.hpp); read-only. Empty: as it is.
  std::string at;
};

// Whether the text is a URL rather than the path of a store.
bool is_remote_url(const std::string& text);

// Errc::invalid_argument: the message names the error in the URL.
RemoteUrl parse_remote_url(const std::string& text);

// An endpoint without trailing slashes. Errc::invalid_argument, with `source` (the URL or the
// setting that states it), unless it is http:// or https:// and a host without a path.
std::string endpoint_of(const std::string& source, std::string value);

// The URL with another option at=; empty: without one. Errc::unsupported: a directory keeps no
// earlier states; invalid_argument: the URL or the time is malformed.
std::string url_at(const std::string& url, const std::string& time);

// Whether two URLs name the same remote: of the options, only the endpoint matters.
bool is_same_place(const RemoteUrl& a, const RemoteUrl& b);

}  // namespace vellum::remote
