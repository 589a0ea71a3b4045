// remote/s3/libcurl.hpp: the functions of libcurl, which is loaded when the first remote on S3 is
// opened, and its certificate authorities.
//
// libcurl depends on about twenty libraries. A program that is linked to Vellum, or runs under
// `vellum run`, loads none of them until it names a remote on S3. The Python package has a small
// static libcurl linked in (CMake's VELLUM_LIBCURL) and does not need the machine's.
#pragma once

#include <curl/curl.h>

#include <string>

#define VELLUM_LIBCURL_FUNCTIONS(APPLY) \
  APPLY(global_init)                    \
  APPLY(version_info)                   \
  APPLY(easy_init)                      \
  APPLY(easy_setopt)                    \
  APPLY(easy_getinfo)                   \
  APPLY(easy_reset)                     \
  APPLY(easy_strerror)                  \
  APPLY(easy_cleanup)                   \
  APPLY(multi_init)                     \
  APPLY(multi_setopt)                   \
  APPLY(multi_add_handle)               \
  APPLY(multi_remove_handle)            \
  APPLY(multi_perform)                  \
  APPLY(multi_info_read)                \
  APPLY(multi_poll)                     \
  APPLY(multi_wakeup)                   \
  APPLY(multi_cleanup)                  \
  APPLY(slist_append)                   \
  APPLY(slist_free_all)

namespace vellum::remote {

// A member for each function of libcurl, without the prefix.
struct LibCurl {
#define VELLUM_MEMBER(name) decltype(&curl_##name) name;
  VELLUM_LIBCURL_FUNCTIONS(VELLUM_MEMBER)
#undef VELLUM_MEMBER
};

// The first call finds libcurl (loaded_libcurl.cpp or linked_libcurl.cpp) and initializes it for
// the lifetime of the process. Errc::unsupported: libcurl is missing or too old.
const LibCurl& libcurl();

// The functions of the machine's library, or of the one that is linked in. For libcurl().
LibCurl find_libcurl();

// The file of certificate authorities; "": libcurl has a default, as the machine's does. A linked
// libcurl has none; for it, the usual paths of distributions are searched. Errc::unsupported: none
// of them exists.
std::string find_ca_bundle();

}  // namespace vellum::remote
