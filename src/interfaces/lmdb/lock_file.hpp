// interfaces/lmdb/lock_file.hpp: the files of an LMDB environment: whether one is its data, and
// its lock file.
#pragma once

#include <string>

#include "base/files/file.hpp"

namespace vellum::lmdb {

// The lock file of the LMDB environment whose data is this file; empty: there is none. LMDB leaves
// it in place when the environment is closed everywhere.
std::string lock_file_of(const std::string& path);

// Keeps other processes from opening the environment while the object exists: they wait.
class Lock {
 public:
  explicit Lock(const std::string& lock_file);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  // False: another process has the environment open.
  bool held() const noexcept { return held_; }

 private:
  int fd_ = -1;
  bool held_ = false;
};

// Whether the file begins like LMDB's data. Errc::corrupted if it does, but cannot be valid.
bool is_data(const base::File& file);

}  // namespace vellum::lmdb
