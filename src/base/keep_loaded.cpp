#include "base/keep_loaded.hpp"

#include <dlfcn.h>

namespace vellum::base {

void keep_loaded() noexcept {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&keep_loaded), &here) == 0) return;
  dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace vellum::base
