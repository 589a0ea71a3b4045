// Names that are taken away, given, and exchanged: files_names.cpp says what becomes of the files.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "shim/files.hpp"
#include "shim/real.hpp"

using vellum::shim::Files;

VELLUM_SHIM int unlink(const char* path) noexcept {
  return Files::instance().remove_name(AT_FDCWD, path, [&] { return VELLUM_REAL(unlink)(path); });
}
VELLUM_SHIM int unlinkat(int directory, const char* path, int flags) noexcept {
  return Files::instance().remove_name(
      directory, path, [&] { return VELLUM_REAL(unlinkat)(directory, path, flags); });
}
VELLUM_SHIM int remove(const char* path) noexcept {
  return Files::instance().remove_name(AT_FDCWD, path, [&] { return VELLUM_REAL(remove)(path); });
}

VELLUM_SHIM int rename(const char* from, const char* to) noexcept {
  return Files::instance().rename({AT_FDCWD, from}, {AT_FDCWD, to}, false,
                                  [&] { return VELLUM_REAL(rename)(from, to); });
}
VELLUM_SHIM int renameat(int from_directory, const char* from, int to_directory,
                         const char* to) noexcept {
  return Files::instance().rename({from_directory, from}, {to_directory, to}, false, [&] {
    return VELLUM_REAL(renameat)(from_directory, from, to_directory, to);
  });
}
VELLUM_SHIM int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                          unsigned flags) noexcept {
  return Files::instance().rename(
      {from_directory, from}, {to_directory, to}, (flags & RENAME_EXCHANGE) != 0,
      [&] { return VELLUM_REAL(renameat2)(from_directory, from, to_directory, to, flags); });
}

VELLUM_SHIM int link(const char* from, const char* to) noexcept {
  return Files::instance().link({AT_FDCWD, to}, [&] { return VELLUM_REAL(link)(from, to); });
}
VELLUM_SHIM int linkat(int from_directory, const char* from, int to_directory, const char* to,
                       int flags) noexcept {
  return Files::instance().link({to_directory, to}, [&] {
    return VELLUM_REAL(linkat)(from_directory, from, to_directory, to, flags);
  });
}
