#include "run/live/live_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "base/files/real_path.hpp"
#include "interfaces/lmdb/meta.hpp"
#include "run/process/proc.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

// The lock file's name for DIR/data.mdb, or with MDB_NOSUBDIR.
bool is_name_of_lock(const std::string& name, const std::string& path) {
  return name == path + "-lock" || name == path.substr(0, path.rfind('/') + 1) + "lock.mdb";
}

bool begins_as_lock(int fd) {
  std::uint32_t magic = 0;
  return VELLUM_REAL(pread)(fd, &magic, sizeof magic, 0) == sizeof magic && magic == lmdb::kMagic;
}

}  // namespace

bool LmdbLock::is_lock(int fd) const {
  struct stat status;
  return VELLUM_REAL(fstat)(fd, &status) == 0 && status.st_ino == inode_ &&
         status.st_dev == device_;
}

bool LmdbLock::is_open(const std::string& path) {
  if (fd_ >= 0 && is_lock(fd_)) return true;
  fd_ = -1;
  for (const int fd : descriptors_of_process()) {
    struct stat status;
    if (!is_name_of_lock(base::path_of(fd), path) || !begins_as_lock(fd) ||
        VELLUM_REAL(fstat)(fd, &status) != 0)
      continue;
    fd_ = fd;
    device_ = status.st_dev;
    inode_ = status.st_ino;
    return true;
  }
  return false;
}

}  // namespace vellum::preload
