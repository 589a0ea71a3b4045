// run/live/lmdb_lock.hpp: detects whether LMDB itself writes a file: LMDB has the lock file with
// the reader table open; other programs that write an LMDB file do not.
#pragma once

#include <cstdint>
#include <string>

namespace vellum::preload {

class LmdbLock {
 public:
  // Whether the environment of this data file is open. Searches again only after it was closed.
  bool is_open(const std::string& path);

 private:
  bool is_lock(int fd) const;

  int fd_ = -1;
  std::uint64_t device_ = 0, inode_ = 0;
};

}  // namespace vellum::preload
