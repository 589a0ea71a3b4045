// interfaces/mapped_io/call_arguments.hpp: optional arguments of calls that libvellum-run.so and
// libvellum-cards.so both replace.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <cstdarg>

namespace vellum::mapped_io {

// The mode after the flags of open(2); 0 if there is none.
inline mode_t mode_of(int flags, va_list arguments) {
  const bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return has_mode ? va_arg(arguments, mode_t) : 0;
}

// The address after the flags of mremap(2); null if there is none.
inline void* new_address_of(int flags, va_list arguments) {
  return (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
}

}  // namespace vellum::mapped_io
