// Vellum's own descriptors: the program's close_range(3) skips them, and a child of fork(2) closes
// them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/files/real_path.hpp"
#include "interfaces/mapped_io/descriptor_io.hpp"
#include "run/files/files.hpp"
#include "run/live/live_files.hpp"
#include "run/live/read_views.hpp"
#include "run/process/proc.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {

using base::path_of;

namespace {

// Device and inode; zeros if the descriptor is not open.
DescriptorIdentity identity_of(int fd) {
  struct stat status{};
  VELLUM_REAL(fstat)(fd, &status);
  return {status.st_dev, status.st_ino};
}

}  // namespace

std::array<DescriptorIdentity, Files::kMaxDescriptors> Files::librarys_;

void Files::before_fork() {
  mapped_io::lock_offsets();  // first: a holder of these waits for the others
  mutex_.lock();
  librarys_mutex_.lock();
  lock_live_files();
  live_ranges().lock();
  read_views().lock();
  if (!any_librarys_ || pipe2(forking_, O_CLOEXEC) != 0) forking_[0] = forking_[1] = -1;
}

// Through the library's descriptors, a child would hold the parent's locks. It closes them, and the
// parent waits for that: otherwise the parent could close a file and fail to reopen it.
void Files::after_fork(bool child) {
  if (child) {
    process_ = process_identity();
    close_librarys();
    for (const auto& open : opens_)
      if (open != nullptr && open->live != nullptr) open->live->protect_inherited();
  }
  if (forking_[1] >= 0) {
    char none = 0;
    VELLUM_REAL(close)(forking_[1]);
    if (!child)
      while (VELLUM_REAL(read)(forking_[0], &none, 1) < 0 && errno == EINTR) {
      }
    VELLUM_REAL(close)(forking_[0]);
  }
  read_views().unlock();
  live_ranges().unlock();
  unlock_live_files();
  librarys_mutex_.unlock();
  mutex_.unlock();
  mapped_io::unlock_offsets();
}

void Files::note_librarys(int fd, bool is) {
  if (fd < 0 || fd >= kMaxDescriptors) return;
  if (!is) {
    entry_at(fd) = 0;
    return;
  }
  set_entry(fd, kLibrarys);  // does not allocate: an allocator may be opening a file
  const auto identity = identity_of(fd);
  const std::lock_guard lock(librarys_mutex_);
  librarys_[static_cast<std::size_t>(fd)] = identity;
  any_librarys_ = true;
}

// REQUIRES: librarys_mutex_. A child of fork(2) would hold the parent's locks through these
// descriptors.
void Files::close_librarys() {
  for (unsigned at = next_entry(0); at != UINT_MAX; at = next_entry(at + 1)) {
    const int fd = static_cast<int>(at);
    if (entry_of(fd) != kLibrarys) continue;
    entry_at(fd) = 0;
    if (identity_of(fd) == librarys_[at]) VELLUM_REAL(close)(fd);
  }
}

bool Files::librarys(int fd) {
  if (entry_of(fd) != kLibrarys) return false;
  const auto identity = identity_of(fd);
  {
    const std::lock_guard lock(librarys_mutex_);
    if (librarys_[static_cast<std::size_t>(fd)] == identity) return true;
  }
  entry_at(fd) = 0;
  return false;
}

}  // namespace vellum::preload
