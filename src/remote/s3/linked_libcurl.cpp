// remote/s3/linked_libcurl.cpp: the functions of a libcurl that is linked in.
#include "remote/s3/libcurl.hpp"

namespace vellum::remote {

LibCurl find_libcurl() {
#define VELLUM_ADDRESS(name) &curl_##name,
  return {VELLUM_LIBCURL_FUNCTIONS(VELLUM_ADDRESS)};
#undef VELLUM_ADDRESS
}

}  // namespace vellum::remote
