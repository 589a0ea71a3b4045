// cli/file_in_use.hpp: who else has a file open, as far as the system tells.
#pragma once

#include <memory>
#include <string>

#include "base/file.hpp"

namespace vellum::cli {

enum class Use { writing, any };

// Whether another descriptor or mapping of the file is there, in any process. False, too, where the
// system does not say (fcntl(2), F_SETLEASE): of another user's file, and on some file systems.
bool is_open_elsewhere(const base::File& file, Use use);

// Errc::busy when a journal of atomic msync lies beside the file: without it, this is not all.
void require_no_journal(const std::string& path);

// The lock file of the LMDB environment whose data is this file; empty: there is none. LMDB keeps
// it where it was when nobody has the environment open any more.
std::string lmdb_lock_file(const std::string& path);

// Keeps others from opening the environment while it lives: they wait.
class LmdbLock {
 public:
  explicit LmdbLock(const std::string& lock_file);
  ~LmdbLock();
  LmdbLock(const LmdbLock&) = delete;
  LmdbLock& operator=(const LmdbLock&) = delete;
  // False: somebody has the environment open.
  bool held() const noexcept { return held_; }

 private:
  int fd_ = -1;
  bool held_ = false;
};

}  // namespace vellum::cli
