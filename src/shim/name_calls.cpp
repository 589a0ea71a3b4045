// A live file keeps its name: who removed or replaced it would leave a region whose file is gone.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "shim/files.hpp"
#include "shim/real.hpp"

namespace vellum::shim {
namespace {

// -1 and errno when it is live.
int refuse_live(int directory, const char* path, const char* what) {
  struct stat status;
  Files& files = Files::instance();
  if (Inside::is() || !files.active()) return 0;
  if (VELLUM_REAL(fstatat)(directory, path, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      files.live(status) == nullptr)
    return 0;
  std::fprintf(stderr, "vellum run: %s: cannot be %s while it is open\n", path, what);
  errno = EBUSY;
  return -1;
}

int refuse_renaming(int from_directory, const char* from, int to_directory, const char* to) {
  if (refuse_live(from_directory, from, "renamed") != 0) return -1;
  return refuse_live(to_directory, to, "replaced");
}

}  // namespace
}  // namespace vellum::shim

using vellum::shim::refuse_live;
using vellum::shim::refuse_renaming;

VELLUM_SHIM int unlink(const char* path) noexcept {
  return refuse_live(AT_FDCWD, path, "removed") != 0 ? -1 : VELLUM_REAL(unlink)(path);
}
VELLUM_SHIM int unlinkat(int directory, const char* path, int flags) noexcept {
  return refuse_live(directory, path, "removed") != 0
             ? -1
             : VELLUM_REAL(unlinkat)(directory, path, flags);
}
VELLUM_SHIM int remove(const char* path) noexcept {
  return refuse_live(AT_FDCWD, path, "removed") != 0 ? -1 : VELLUM_REAL(remove)(path);
}
VELLUM_SHIM int rename(const char* from, const char* to) noexcept {
  return refuse_renaming(AT_FDCWD, from, AT_FDCWD, to) != 0 ? -1 : VELLUM_REAL(rename)(from, to);
}
VELLUM_SHIM int renameat(int from_directory, const char* from, int to_directory,
                         const char* to) noexcept {
  return refuse_renaming(from_directory, from, to_directory, to) != 0
             ? -1
             : VELLUM_REAL(renameat)(from_directory, from, to_directory, to);
}
VELLUM_SHIM int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                          unsigned flags) noexcept {
  return refuse_renaming(from_directory, from, to_directory, to) != 0
             ? -1
             : VELLUM_REAL(renameat2)(from_directory, from, to_directory, to, flags);
}
