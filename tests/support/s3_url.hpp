// A real S3 server for tests, if available: VELLUM_TEST_S3_URL names a bucket with write
// permission, as s3://bucket?endpoint=http://127.0.0.1:7070; credentials are found as by Amazon's
// tools.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

namespace vellum::test {

inline constexpr const char* kNoS3 =
    "VELLUM_TEST_S3_URL is not set: no S3 server to try this on (tools/with-s3.sh)";

// A unique URL; empty: there is no server.
inline std::string new_s3_url() {
  const char* const given = std::getenv("VELLUM_TEST_S3_URL");
  if (given == nullptr || *given == 0) return "";
  static int made = 0;
  const std::string url = given;
  const std::size_t query = std::min(url.find('?'), url.size());
  std::string path = url.substr(0, query);
  while (path.back() == '/') path.pop_back();
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return path + "/test-" + std::to_string(getpid()) + "-" + std::to_string(now) + "-" +
         std::to_string(++made) + url.substr(query);
}

// A remote at the server, or in this directory. Empty: there is no server.
inline std::string new_remote_url(bool at_server, const std::string& directory) {
  return at_server ? new_s3_url() : "file://" + directory;
}

}  // namespace vellum::test
