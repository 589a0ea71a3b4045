// shim/old_version.hpp: paths in a run that reads an old version (`vellum run --version`).
//
// The program finds a copy of the version where it looks for the file, and what lies beside the
// file by databases' custom (LMDB's lock.mdb, SQLite's -wal) is private, too. To change the file,
// or to take its name, is what it would be on a file system that is mounted to read only.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <string>

namespace vellum::shim {

inline constexpr const char* kReadOnly = "an old version is to be read only";

class SeenPath {
 public:
  // `follows`: the call goes on at what a link leads to.
  SeenPath(int directory, const char* path, bool follows = true);

  // The path to ask the kernel for.
  const char* c_str() const noexcept { return instead_.empty() ? given_ : instead_.c_str(); }
  bool is_version() const noexcept { return is_version_; }
  // It lies beside the copy.
  bool is_beside() const noexcept { return !instead_.empty() && !is_version_; }

 private:
  bool find(int directory, const char* path);
  void find_behind_link(int directory, const char* path);

  const char* given_;
  std::string instead_;
  bool is_version_ = false;
};

// Whether the file lies below a directory, whose name would take it along.
bool version_lies_below(int directory, const char* path);

// What `call` gives, of the path to ask the kernel for; EROFS when that would change the version.
template <typename Call>
int change_at(int directory, const char* path, bool follows, const Call& call) {
  const SeenPath seen(directory, path, follows);
  if (!seen.is_version()) return call(seen.c_str());
  errno = EROFS;
  return -1;
}

}  // namespace vellum::shim
