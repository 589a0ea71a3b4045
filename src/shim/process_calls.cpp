// The end of the process, and its beginning.
#include <stdlib.h>
#include <unistd.h>

#include "shim/files.hpp"
#include "shim/real.hpp"

namespace {

using vellum::shim::Files;

// Before the program can change its environment.
[[gnu::constructor]] void begin() { Files::instance(); }

void close_all() noexcept {
  if (Files::instance().active() && !Files::instance().shares_memory())
    Files::instance().close_all();
}

}  // namespace

// What has been written is in the file, however a process ends by itself.
VELLUM_SHIM void _exit(int status) {
  close_all();
  VELLUM_REAL(_exit)(status);
  __builtin_unreachable();
}
VELLUM_SHIM void _Exit(int status) noexcept {
  close_all();
  VELLUM_REAL(_Exit)(status);
  __builtin_unreachable();
}
VELLUM_SHIM void quick_exit(int status) noexcept {
  close_all();
  VELLUM_REAL(quick_exit)(status);
  __builtin_unreachable();
}
