// shim/lmdb_lock.hpp: whether it is LMDB that writes a file, and not a program that only writes
// such a file: LMDB has the table of readers beside it open.
#pragma once

#include <cstdint>
#include <string>

namespace vellum::shim {

class LmdbLock {
 public:
  // Of the environment whose file has this path. The search is made once, as long as it stays open.
  bool is_open(const std::string& path);

 private:
  bool is_lock(int fd) const;

  int fd_ = -1;
  std::uint64_t device_ = 0, inode_ = 0;
};

}  // namespace vellum::shim
