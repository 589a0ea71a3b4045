// Calls that remove, add and exchange names. file_names.cpp handles the files; old_version.hpp
// handles names of a version.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_number.hpp"
#include "run/files/files.hpp"
#include "run/files/old_version.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

using base::as_result;
using PathName = FileNames::Name;

template <typename Call>
int take_name(int directory, const char* path, const Call& call) {
  return change_at(directory, path, false, [&](const char* at) {
    return Files::instance().names().remove(directory, at, [&] { return call(at); });
  });
}

// Private files are in another directory, so no name can move in or out. Returns 0 or errno.
int refuse_pair(const SeenPath& from, const SeenPath& to, int from_directory) {
  if (from.is_version() || to.is_version()) return EROFS;
  if (from.is_companion() == to.is_companion()) return 0;
  const int there = VELLUM_REAL(faccessat)(from_directory, from.c_str(), F_OK, AT_SYMLINK_NOFOLLOW);
  return there == 0 ? EXDEV : errno;
}

template <typename Call>
int move_name(const PathName& from, const PathName& to, bool exchange, const Call& call) {
  const SeenPath source(from.directory, from.path, false), target(to.directory, to.path, false);
  if (const int error = refuse_pair(source, target, from.directory)) return as_result(error);
  if (version_lies_below(from.directory, from.path) ||
      (exchange && version_lies_below(to.directory, to.path)))
    return as_result(EBUSY);
  return Files::instance().names().rename({from.directory, source.c_str()},
                                          {to.directory, target.c_str()}, exchange,
                                          [&] { return call(source.c_str(), target.c_str()); });
}

template <typename Call>
int add_name(const PathName& from, const PathName& to, bool follows, const Call& call) {
  const SeenPath source(from.directory, from.path, follows), target(to.directory, to.path, false);
  if (target.is_version()) return as_result(EEXIST);
  if (const int error = refuse_pair(source, target, from.directory)) return as_result(error);
  return Files::instance().names().link({to.directory, target.c_str()},
                                        [&] { return call(source.c_str(), target.c_str()); });
}

// For everything except regular files. An old version exists, whether or not the file does.
template <typename Call>
int make_name(int directory, const char* path, const Call& call) {
  const SeenPath seen(directory, path, false);
  return seen.is_version() ? as_result(EEXIST) : call(seen.c_str());
}

}  // namespace
}  // namespace vellum::preload

using vellum::base::as_result;
using vellum::preload::add_name;
using vellum::preload::make_name;
using vellum::preload::move_name;
using vellum::preload::take_name;

VELLUM_PRELOAD int unlink(const char* path) noexcept {
  return take_name(AT_FDCWD, path, [&](const char* at) { return VELLUM_REAL(unlink)(at); });
}
VELLUM_PRELOAD int unlinkat(int directory, const char* path, int flags) noexcept {
  return take_name(directory, path,
                   [&](const char* at) { return VELLUM_REAL(unlinkat)(directory, at, flags); });
}
VELLUM_PRELOAD int remove(const char* path) noexcept {
  return take_name(AT_FDCWD, path, [&](const char* at) { return VELLUM_REAL(remove)(at); });
}

VELLUM_PRELOAD int rename(const char* from, const char* to) noexcept {
  return move_name(
      {AT_FDCWD, from}, {AT_FDCWD, to}, false,
      [&](const char* source, const char* target) { return VELLUM_REAL(rename)(source, target); });
}
VELLUM_PRELOAD int renameat(int from_directory, const char* from, int to_directory,
                            const char* to) noexcept {
  return move_name({from_directory, from}, {to_directory, to}, false,
                   [&](const char* source, const char* target) {
                     return VELLUM_REAL(renameat)(from_directory, source, to_directory, target);
                   });
}
VELLUM_PRELOAD int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                             unsigned flags) noexcept {
  return move_name({from_directory, from}, {to_directory, to}, (flags & RENAME_EXCHANGE) != 0,
                   [&](const char* source, const char* target) {
                     return VELLUM_REAL(renameat2)(from_directory, source, to_directory, target,
                                                   flags);
                   });
}

VELLUM_PRELOAD int link(const char* from, const char* to) noexcept {
  return add_name(
      {AT_FDCWD, from}, {AT_FDCWD, to}, false,
      [&](const char* source, const char* target) { return VELLUM_REAL(link)(source, target); });
}
VELLUM_PRELOAD int linkat(int from_directory, const char* from, int to_directory, const char* to,
                          int flags) noexcept {
  return add_name({from_directory, from}, {to_directory, to}, (flags & AT_SYMLINK_FOLLOW) != 0,
                  [&](const char* source, const char* target) {
                    return VELLUM_REAL(linkat)(from_directory, source, to_directory, target, flags);
                  });
}

VELLUM_PRELOAD int symlink(const char* to, const char* path) noexcept {
  return make_name(AT_FDCWD, path, [&](const char* at) { return VELLUM_REAL(symlink)(to, at); });
}
VELLUM_PRELOAD int symlinkat(const char* to, int directory, const char* path) noexcept {
  return make_name(directory, path,
                   [&](const char* at) { return VELLUM_REAL(symlinkat)(to, directory, at); });
}
VELLUM_PRELOAD int mknod(const char* path, mode_t mode, dev_t device) noexcept {
  return make_name(AT_FDCWD, path,
                   [&](const char* at) { return VELLUM_REAL(mknod)(at, mode, device); });
}
VELLUM_PRELOAD int mknodat(int directory, const char* path, mode_t mode, dev_t device) noexcept {
  return make_name(directory, path, [&](const char* at) {
    return VELLUM_REAL(mknodat)(directory, at, mode, device);
  });
}
VELLUM_PRELOAD int mkfifo(const char* path, mode_t mode) noexcept {
  return make_name(AT_FDCWD, path, [&](const char* at) { return VELLUM_REAL(mkfifo)(at, mode); });
}
VELLUM_PRELOAD int mkfifoat(int directory, const char* path, mode_t mode) noexcept {
  return make_name(directory, path,
                   [&](const char* at) { return VELLUM_REAL(mkfifoat)(directory, at, mode); });
}
// Directories are created at the requested path, whatever their name.
VELLUM_PRELOAD int mkdir(const char* path, mode_t mode) noexcept {
  return make_name(AT_FDCWD, path, [&](const char*) { return VELLUM_REAL(mkdir)(path, mode); });
}
VELLUM_PRELOAD int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  return make_name(directory, path,
                   [&](const char*) { return VELLUM_REAL(mkdirat)(directory, path, mode); });
}

// NOLINTBEGIN(bugprone-reserved-identifier): mknod(2) until glibc 2.33, with a version in front.
extern "C" int __xmknod(int version, const char* path, mode_t mode, dev_t* device) noexcept;
extern "C" int __xmknodat(int version, int directory, const char* path, mode_t mode,
                          dev_t* device) noexcept;
VELLUM_PRELOAD int __xmknod(int version, const char* path, mode_t mode, dev_t* device) noexcept {
  return version == 0 ? mknod(path, mode, *device) : as_result(EINVAL);
}
VELLUM_PRELOAD int __xmknodat(int version, int directory, const char* path, mode_t mode,
                              dev_t* device) noexcept {
  return version == 0 ? mknodat(directory, path, mode, *device) : as_result(EINVAL);
}
// NOLINTEND(bugprone-reserved-identifier)
