// base/memory/kernel_page_size.hpp: the kernel's page size.
//
// Dirty pages are detected, mapped and dropped in units of 4 KiB. A kernel with larger pages would
// silently include their neighbours.
#pragma once

#include <unistd.h>

#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::base {

// Throws Errc::unsupported unless the kernel's pages have 4 KiB. `what` names the feature that
// needs them.
inline void require_pages_of_4_kib(const char* what) {
  const long bytes = sysconf(_SC_PAGESIZE);
  if (bytes == 4096) return;
  fail(Errc::unsupported,
       "{} needs a kernel with pages of 4 KiB, and this one's have {} KiB: versions can be read "
       "here with `vellum export`, `diff` and `mount`",
       what, bytes / 1024);
}

}  // namespace vellum::base
