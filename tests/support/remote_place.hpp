// Where a test keeps a remote: a real S3 server when there is one, else a directory.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace vellum::test {

// The URL of an empty bucket at a server that runs (tools/with-s3.sh); empty: there is none.
inline std::string s3_url() {
  const char* const url = std::getenv("VELLUM_TEST_S3_URL");
  return url == nullptr ? "" : url;
}

// A URL below that bucket which no other test has.
inline std::string new_s3_url() {
  static std::atomic<int> number{0};
  const std::string base = s3_url(),
                    name = "/t" + std::to_string(getpid()) + "-" + std::to_string(number++);
  const std::size_t options = base.find('?');
  return base.substr(0, options) + name +
         (options == std::string::npos ? "" : base.substr(options));
}

}  // namespace vellum::test
