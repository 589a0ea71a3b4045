// memory/kernel/support.hpp: what this kernel, as it lets this process use it, offers for finding
// stores. Everything that depends on the kernel asks here, tests included; nobody asks for a version.
#pragma once

#include <string>

namespace vellum::region {

struct KernelSupport {
  // errno of opening a userfaultfd with asynchronous write protection; 0: there is one. EPERM: a
  // container's filter, for example. ENOTSUP: userfaultfd without that (before Linux 6.7).
  int write_protection = 0;
  // errno of PAGEMAP_SCAN (Linux 6.7); 0: it works.
  int page_scan = 0;
  // A trial on two pages has gone well.
  bool engine_uffd = false;
  // The uffd engine can also map a file that others fill.
  bool shares = false;
};

// Probed once, or again where descriptors or memory were short.
KernelSupport kernel_support() noexcept;

// Why engine uffd is not to be had, for messages. REQUIRES: it is not.
std::string why_no_uffd(const KernelSupport& support);

inline bool uffd_engine_works() noexcept { return kernel_support().engine_uffd; }
inline bool uffd_engine_shares() noexcept { return kernel_support().shares; }

}  // namespace vellum::region
