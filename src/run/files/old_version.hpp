// run/files/old_version.hpp: paths in a run that reads an old version (`vellum run --version`). The
// program finds a copy of the version at the file's path. Companion files of databases (LMDB's
// lock.mdb, SQLite's -wal) are private, too. Changing the file or reusing its name fails as on a
// read-only file system.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <string>

namespace vellum::preload {

inline constexpr const char* kReadOnly = "an old version can only be read";

class SeenPath {
 public:
  // `follows`: the call follows symbolic links.
  SeenPath(int directory, const char* path, bool follows = true);

  // The path to pass to the kernel.
  const char* c_str() const noexcept { return instead_.empty() ? given_ : instead_.c_str(); }
  bool is_version() const noexcept { return is_version_; }
  // The path is next to the copy.
  bool is_companion() const noexcept { return !instead_.empty() && !is_version_; }

 private:
  bool find(int directory, const char* path);
  void find_behind_link(int directory, const char* path);

  const char* given_;
  std::string instead_;
  bool is_version_ = false;
};

// Whether the file is below this directory: renaming the directory would move it.
bool version_lies_below(int directory, const char* path);

// Calls `call` with the path to pass to the kernel; EROFS when that would change the version.
template <typename Call>
int change_at(int directory, const char* path, bool follows, const Call& call) {
  const SeenPath seen(directory, path, follows);
  if (!seen.is_version()) return call(seen.c_str());
  errno = EROFS;
  return -1;
}

}  // namespace vellum::preload
