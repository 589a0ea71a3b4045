// remote/s3/no_s3_engine.cpp: the error of a build without libcurl.
#include "base/fail.hpp"
#include "remote/s3/s3_engine.hpp"

namespace vellum::remote {

std::unique_ptr<ObjectStore> open_s3(const RemoteUrl& url, std::chrono::milliseconds, std::size_t) {
  fail(Errc::unsupported, "{}: this build of vellum has no S3, since libcurl was missing",
       url.text);
}

}  // namespace vellum::remote
