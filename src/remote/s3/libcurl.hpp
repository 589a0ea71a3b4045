// remote/s3/libcurl.hpp: the functions of libcurl, which is loaded when the first remote on S3
// is opened.
//
// libcurl brings some twenty libraries. A program that is linked to Vellum, or one under
// `vellum run`, has none of them in its memory until it names a remote on S3.
#pragma once

#include <curl/curl.h>

namespace vellum::remote {

struct LibCurl {
  decltype(&curl_global_init) global_init;
  decltype(&curl_version_info) version_info;
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_setopt) easy_setopt;
  decltype(&curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_reset) easy_reset;
  decltype(&curl_easy_strerror) easy_strerror;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_multi_init) multi_init;
  decltype(&curl_multi_setopt) multi_setopt;
  decltype(&curl_multi_add_handle) multi_add_handle;
  decltype(&curl_multi_remove_handle) multi_remove_handle;
  decltype(&curl_multi_perform) multi_perform;
  decltype(&curl_multi_info_read) multi_info_read;
  decltype(&curl_multi_poll) multi_poll;
  decltype(&curl_multi_wakeup) multi_wakeup;
  decltype(&curl_multi_cleanup) multi_cleanup;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;
};

// Loaded and started by the first call, for as long as the process lives. Errc::unsupported: there
// is no libcurl, or it is too old.
const LibCurl& libcurl();

}  // namespace vellum::remote
