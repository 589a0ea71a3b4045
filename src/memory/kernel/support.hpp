// memory/kernel/support.hpp: the kernel's facilities for tracking stores that this process may use.
//
// All code that depends on the kernel checks here, tests included; none checks the kernel's
// version.
#pragma once

#include <string>

namespace vellum::region {

struct KernelSupport {
  // errno of opening a userfaultfd with asynchronous write protection; 0: it works. EPERM: a
  // container's filter, for example. ENOTSUP: userfaultfd without that (before Linux 6.7).
  int write_protection = 0;
  // errno of PAGEMAP_SCAN (Linux 6.7); 0: it works.
  int page_scan = 0;
  // A trial on two pages has succeeded.
  bool engine_uffd = false;
  // Engine uffd can also map a file that other processes fill.
  bool shares = false;
};

// Probed once, or again where descriptors or memory were short.
KernelSupport kernel_support() noexcept;

// Why engine uffd is not available, for messages. REQUIRES: it is not.
std::string why_no_uffd(const KernelSupport& support);

inline bool uffd_engine_works() noexcept { return kernel_support().engine_uffd; }
inline bool uffd_engine_shares() noexcept { return kernel_support().shares; }

}  // namespace vellum::region
