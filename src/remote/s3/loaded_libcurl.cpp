// remote/s3/loaded_libcurl.cpp: the functions of the machine's libcurl, by dlopen().
#include <dlfcn.h>

#include <string>

#include "base/fail.hpp"
#include "remote/s3/libcurl.hpp"

namespace vellum::remote {
namespace {

// The names of Debian's two builds; other distributions use the first one.
constexpr const char* kLibraryNames[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

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

}  // namespace

LibCurl find_libcurl() {
  void* const library = open_library();
  LibCurl out;
#define VELLUM_FIND(name) find(library, "curl_" #name, out.name);
  VELLUM_LIBCURL_FUNCTIONS(VELLUM_FIND)
#undef VELLUM_FIND
  return out;
}

}  // namespace vellum::remote
