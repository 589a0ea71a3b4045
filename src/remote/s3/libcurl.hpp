// remote/s3/libcurl.hpp: the functions of libcurl, which is loaded when the first remote on S3
// is opened.
//
// libcurl brings some twenty libraries. A program that is linked to Vellum, or one under
// `vellum run`, has none of them in its memory until it names a remote on S3. The Python package
// has a small libcurl of its own linked in (VELLUM_LIBCURL of CMake), and needs none of the machine.
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

// A member for each of curl's functions, without the prefix.
struct LibCurl {
#define VELLUM_MEMBER(name) decltype(&curl_##name) name;
  VELLUM_LIBCURL_FUNCTIONS(VELLUM_MEMBER)
#undef VELLUM_MEMBER
};

// Found (loaded_libcurl.cpp or linked_libcurl.cpp) and started by the first call, for as long as the
// process lives. Errc::unsupported: there is no libcurl, or it is too old.
const LibCurl& libcurl();

// The functions of the machine's library, or of the one that is linked in.
LibCurl find_libcurl();

// A file, or "": libcurl knows by itself, as the machine's does. One that is linked in knows nothing of
// the machine, so the file is looked for where distributions have it. Errc::unsupported: nowhere.
std::string find_ca_bundle();

}  // namespace vellum::remote
