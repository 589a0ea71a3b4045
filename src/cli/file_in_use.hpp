// cli/file_in_use.hpp: whether others have a file open, as far as the system tells.
#pragma once

#include <memory>
#include <string>

#include "base/file.hpp"

namespace vellum::cli {

enum class Use { writing, any };

// Whether any process has another descriptor or mapping of the file. False, too, where the system
// does not tell (fcntl(2), F_SETLEASE): for another user's file, and on some file systems.
bool is_open_elsewhere(const base::File& file, Use use);

// Errc::busy if a journal of atomic msync lies beside the file: the file alone is incomplete.
void require_no_journal(const std::string& path);

// The lock file of the LMDB environment whose data is this file; empty: there is none. LMDB leaves
// it in place when the environment is closed everywhere.
std::string lmdb_lock_file(const std::string& path);

// Keeps others from opening the environment while the object lives: they wait.
class LmdbLock {
 public:
  explicit LmdbLock(const std::string& lock_file);
  ~LmdbLock();
  LmdbLock(const LmdbLock&) = delete;
  LmdbLock& operator=(const LmdbLock&) = delete;
  // False: another process has the environment open.
  bool held() const noexcept { return held_; }

 private:
  int fd_ = -1;
  bool held_ = false;
};

}  // namespace vellum::cli
