// Descriptors that are Vellum's own: the program's close_range(3) leaves them, and a child of
// fork(2) does not keep them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/real_path.hpp"
#include "shim/files.hpp"
#include "shim/proc.hpp"
#include "shim/real.hpp"

namespace vellum::shim {

using base::path_of;

namespace {

// Device and inode; of what is not open, none.
std::pair<std::uint64_t, std::uint64_t> identity_of(int fd) {
  struct stat status{};
  VELLUM_REAL(fstat)(fd, &status);
  return {status.st_dev, status.st_ino};
}

}  // namespace

void Files::before_fork() {
  mutex_.lock();
  librarys_mutex_.lock();
  if (librarys_.empty() || pipe2(forking_, O_CLOEXEC) != 0) forking_[0] = forking_[1] = -1;
}

// A child would hold the parent's locks by what is the library's: it closes that, and the parent
// goes on when it has. Else the parent could close a file, and not open it again.
void Files::after_fork(bool child) {
  if (child) {
    process_ = getpid();
    close_librarys();
  }
  if (forking_[1] >= 0) {
    char none = 0;
    VELLUM_REAL(close)(forking_[1]);
    if (!child)
      while (VELLUM_REAL(read)(forking_[0], &none, 1) < 0 && errno == EINTR) {
      }
    VELLUM_REAL(close)(forking_[0]);
  }
  librarys_mutex_.unlock();
  mutex_.unlock();
}

// Those that have not come from open(2): by what they are. `programs` were there before.
void Files::mark_librarys(const std::vector<int>& programs) {
  for (const int fd : descriptors_of_process()) {
    if (mark_of(fd) != 0 || std::binary_search(programs.begin(), programs.end(), fd)) continue;
    const std::string path = path_of(fd);
    if (path == "anon_inode:[userfaultfd]" || path.rfind("/memfd:vellum", 0) == 0 ||
        path.rfind(config_.store + "/", 0) == 0 ||
        std::any_of(opens_.begin(), opens_.end(),
                    [&](const auto& open) { return open != nullptr && open->target.path == path; }))
      note_librarys(fd, true);
  }
}

void Files::note_librarys(int fd, bool is) {
  if (fd < 0 || fd >= kMaxDescriptors) return;
  mark_at(fd) = is ? kLibrarys : 0;
  if (!is) return;
  const auto identity = identity_of(fd);
  const std::lock_guard lock(librarys_mutex_);
  librarys_[fd] = identity;
}

// REQUIRES: librarys_mutex_. In a child of fork(2), which would hold the parent's locks by them.
void Files::close_librarys() {
  for (const auto& [fd, file] : librarys_) {
    if (mark_of(fd) != kLibrarys) continue;
    mark_at(fd) = 0;
    if (identity_of(fd) == file) VELLUM_REAL(close)(fd);
  }
}

bool Files::librarys(int fd) {
  if (mark_of(fd) != kLibrarys) return false;
  const auto identity = identity_of(fd);
  {
    const std::lock_guard lock(librarys_mutex_);
    const auto found = librarys_.find(fd);
    if (found != librarys_.end() && found->second == identity) return true;
  }
  mark_at(fd) = 0;
  return false;
}

}  // namespace vellum::shim
