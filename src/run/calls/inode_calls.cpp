// A file's attributes other than content and size: access(2), chmod(2), chown(2), setxattr(2). For
// a live file the kernel handles them; those of an old version cannot change.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "run/files/old_version.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

bool follows(int flags) { return (flags & AT_SYMLINK_NOFOLLOW) == 0; }

template <typename Call>
int ask_access(int directory, const char* path, int mode, bool follows, const Call& call) {
  if ((mode & W_OK) != 0) return change_at(directory, path, follows, call);
  return call(SeenPath(directory, path, follows).c_str());
}

}  // namespace
}  // namespace vellum::preload

using vellum::preload::ask_access;
using vellum::preload::change_at;
using vellum::preload::follows;

#define VELLUM_ACCESS(name)                                                         \
  VELLUM_PRELOAD int name(const char* path, int mode) noexcept {                    \
    return ask_access(AT_FDCWD, path, mode, true,                                   \
                      [&](const char* at) { return VELLUM_REAL(name)(at, mode); }); \
  }
VELLUM_ACCESS(access)
VELLUM_ACCESS(eaccess)
VELLUM_ACCESS(euidaccess)
VELLUM_PRELOAD int faccessat(int directory, const char* path, int mode, int flags) noexcept {
  return ask_access(directory, path, mode, follows(flags), [&](const char* at) {
    return VELLUM_REAL(faccessat)(directory, at, mode, flags);
  });
}

VELLUM_PRELOAD int chmod(const char* path, mode_t mode) noexcept {
  return change_at(AT_FDCWD, path, true,
                   [&](const char* at) { return VELLUM_REAL(chmod)(at, mode); });
}
VELLUM_PRELOAD int lchmod(const char* path, mode_t mode) noexcept {
  return change_at(AT_FDCWD, path, false,
                   [&](const char* at) { return VELLUM_REAL(lchmod)(at, mode); });
}
VELLUM_PRELOAD int fchmodat(int directory, const char* path, mode_t mode, int flags) noexcept {
  return change_at(directory, path, follows(flags), [&](const char* at) {
    return VELLUM_REAL(fchmodat)(directory, at, mode, flags);
  });
}

VELLUM_PRELOAD int chown(const char* path, uid_t user, gid_t group) noexcept {
  return change_at(AT_FDCWD, path, true,
                   [&](const char* at) { return VELLUM_REAL(chown)(at, user, group); });
}
VELLUM_PRELOAD int lchown(const char* path, uid_t user, gid_t group) noexcept {
  return change_at(AT_FDCWD, path, false,
                   [&](const char* at) { return VELLUM_REAL(lchown)(at, user, group); });
}
VELLUM_PRELOAD int fchownat(int directory, const char* path, uid_t user, gid_t group,
                            int flags) noexcept {
  return change_at(directory, path, follows(flags), [&](const char* at) {
    return VELLUM_REAL(fchownat)(directory, at, user, group, flags);
  });
}

VELLUM_PRELOAD int setxattr(const char* path, const char* name, const void* value, size_t bytes,
                            int flags) noexcept {
  return change_at(AT_FDCWD, path, true, [&](const char* at) {
    return VELLUM_REAL(setxattr)(at, name, value, bytes, flags);
  });
}
VELLUM_PRELOAD int lsetxattr(const char* path, const char* name, const void* value, size_t bytes,
                             int flags) noexcept {
  return change_at(AT_FDCWD, path, false, [&](const char* at) {
    return VELLUM_REAL(lsetxattr)(at, name, value, bytes, flags);
  });
}
VELLUM_PRELOAD int removexattr(const char* path, const char* name) noexcept {
  return change_at(AT_FDCWD, path, true,
                   [&](const char* at) { return VELLUM_REAL(removexattr)(at, name); });
}
VELLUM_PRELOAD int lremovexattr(const char* path, const char* name) noexcept {
  return change_at(AT_FDCWD, path, false,
                   [&](const char* at) { return VELLUM_REAL(lremovexattr)(at, name); });
}
