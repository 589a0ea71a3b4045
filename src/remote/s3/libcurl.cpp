#include "remote/s3/libcurl.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

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

constexpr const char* kBundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Alpine, Arch, Gentoo
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Red Hat, Fedora, Amazon Linux
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // its target; newer Fedora
    "/etc/ssl/ca-bundle.pem",                             // SUSE
    "/etc/ssl/cert.pem",                                  // LibreSSL, older Alpine
};

}  // namespace

const LibCurl& libcurl() {
  static const LibCurl started = start();
  return started;
}

std::string find_ca_bundle() {
  const auto* const built = libcurl().version_info(CURLVERSION_NOW);
  if (built->cainfo != nullptr || built->capath != nullptr) return "";
  for (const char* file : kBundles) {
    if (::access(file, R_OK) == 0) return file;
  }
  fail(Errc::unsupported,
       "this machine has no certificate authorities at {}: install ca-certificates, or name a file "
       "in AWS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE",
       fmt::join(kBundles, ", "));
}

}  // namespace vellum::remote
