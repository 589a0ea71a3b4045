// memory/kernel/support.hpp: the kernel's facilities for tracking stores that this process may use.
//
// All code that depends on the kernel checks here, tests included; none checks the kernel's
// version.
#pragma once

#include <string>

#include "memory/kernel/kernel.hpp"

namespace vellum::region {

struct KernelSupport {
  // errno of opening a userfaultfd with write protection of memfds, asynchronous or synchronous; 0:
  // it works. EPERM: a container's filter, for example. ENOTSUP: userfaultfd without that (before
  // Linux 6.7, 5.19).
  int asynchronous = 0;
  int synchronous = 0;
  // errno of PAGEMAP_SCAN (Linux 6.7); 0: it works.
  int page_scan = 0;
  // How engine uffd finds writes: a trial on two pages has succeeded. none: the engine is not
  // available.
  Tracking tracking = Tracking::none;
  // map_file_pages() can arm the pages (Linux 6.4).
  bool maps_armed = false;
  // Engine uffd can also map a file that other processes fill.
  bool shares = false;
};

// Probed once, or again where descriptors or memory were short.
KernelSupport kernel_support() noexcept;

// Why engine uffd is not available, for messages. REQUIRES: it is not.
std::string why_no_uffd(const KernelSupport& support);

// Why it finds writes only by synchronous write protection. REQUIRES: it does.
std::string why_synchronous(const KernelSupport& support);

inline bool uffd_engine_works() noexcept { return kernel_support().tracking != Tracking::none; }
inline bool uffd_engine_shares() noexcept { return kernel_support().shares; }

}  // namespace vellum::region
