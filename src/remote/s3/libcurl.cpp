#include "remote/s3/libcurl.hpp"

#include "base/fail.hpp"

namespace vellum::remote {
namespace {

constexpr unsigned kMinVersion = 0x075500;  // 7.85: CURLOPT_PROTOCOLS_STR

LibCurl start() {
  const LibCurl out = find_libcurl();
  const auto* const version = out.version_info(CURLVERSION_NOW);
  if (version->version_num < kMinVersion) {
    fail(Errc::unsupported, "remotes on S3 need libcurl 7.85, and the system's is {}",
         version->version);
  }
  const CURLcode started = out.global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) fail(Errc::unsupported, "libcurl: {}", out.easy_strerror(started));
  return out;
}

}  // namespace

const LibCurl& libcurl() {
  static const LibCurl started = start();
  return started;
}

}  // namespace vellum::remote
