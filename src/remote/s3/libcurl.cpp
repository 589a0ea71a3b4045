#include "remote/s3/libcurl.hpp"

#include <dlfcn.h>

#include "base/fail.hpp"

namespace vellum::remote {
namespace {

// The names of Debian's two builds; one with another TLS library has the first one elsewhere.
constexpr const char* kLibraryNames[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
constexpr unsigned kLeastVersion = 0x075500;  // 7.85: CURLOPT_PROTOCOLS_STR

void* open_library() {
  std::string reasons;
  for (const char* name : kLibraryNames) {
    if (void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    reasons += std::string(reasons.empty() ? "" : "; ") + ::dlerror();
  }
  fail(Errc::unsupported, "remotes on S3 need libcurl 7.85: {}", reasons);
}

template <typename Function>
void find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  if (out == nullptr) fail(Errc::unsupported, "remotes on S3 need libcurl 7.85: no {}", name);
}

LibCurl load() {
  void* const library = open_library();
  LibCurl out;
  find(library, "curl_global_init", out.global_init);
  find(library, "curl_version_info", out.version_info);
  find(library, "curl_easy_init", out.easy_init);
  find(library, "curl_easy_setopt", out.easy_setopt);
  find(library, "curl_easy_getinfo", out.easy_getinfo);
  find(library, "curl_easy_reset", out.easy_reset);
  find(library, "curl_easy_strerror", out.easy_strerror);
  find(library, "curl_easy_cleanup", out.easy_cleanup);
  find(library, "curl_multi_init", out.multi_init);
  find(library, "curl_multi_setopt", out.multi_setopt);
  find(library, "curl_multi_add_handle", out.multi_add_handle);
  find(library, "curl_multi_remove_handle", out.multi_remove_handle);
  find(library, "curl_multi_perform", out.multi_perform);
  find(library, "curl_multi_info_read", out.multi_info_read);
  find(library, "curl_multi_poll", out.multi_poll);
  find(library, "curl_multi_wakeup", out.multi_wakeup);
  find(library, "curl_multi_cleanup", out.multi_cleanup);
  find(library, "curl_slist_append", out.slist_append);
  find(library, "curl_slist_free_all", out.slist_free_all);
  const auto* const version = out.version_info(CURLVERSION_NOW);
  if (version->version_num < kLeastVersion) {
    fail(Errc::unsupported, "remotes on S3 need libcurl 7.85, and the system's is {}",
         version->version);
  }
  const CURLcode started = out.global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) fail(Errc::unsupported, "libcurl: {}", out.easy_strerror(started));
  return out;
}

}  // namespace

const LibCurl& libcurl() {
  static const LibCurl loaded = load();
  return loaded;
}

}  // namespace vellum::remote
