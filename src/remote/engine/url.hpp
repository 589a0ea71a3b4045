// remote/engine/url.hpp: where a remote is.
//
//   file:///mnt/lustre/x
//   s3://bucket/prefix?endpoint=https://host:port&region=R&profile=P&addressing=path|virtual
//
// All parts behind the question mark are optional. Credentials are refused in a URL: it is kept in
// files and shown in messages.
#pragma once

#include <string>

namespace vellum::remote {

struct RemoteUrl {
  enum class EngineKind { directory, s3 };
  enum class Addressing {
    automatic,     // path with an endpoint of one's own, else virtual_host
    path,          // https://host/bucket/key
    virtual_host,  // https://bucket.host/key
  };
  EngineKind kind = EngineKind::directory;
  std::string text;  // as given
  std::string path;  // of a directory, absolute
  std::string bucket, prefix;
  std::string endpoint;  // with its scheme, without a path; empty: the usual chain decides
  std::string region, profile;
  Addressing addressing = Addressing::automatic;
};

// Whether the text is meant as a URL, and not as the path of a store.
bool is_remote_url(const std::string& text);

// Errc::invalid_argument says what is wrong with it.
RemoteUrl parse_remote_url(const std::string& text);

// Whether two URLs name one place: region, profile and addressing only say how it is reached.
bool is_same_place(const RemoteUrl& a, const RemoteUrl& b);

}  // namespace vellum::remote
