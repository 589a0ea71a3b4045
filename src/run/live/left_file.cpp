// A live file that has lost its name, and one that a child of fork(2) has inherited: this process
// commits neither.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "run/live/live_file.hpp"
#include "run/live/read_views.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {

// REQUIRES: size_mutex_, exclusively. Commits the writes since the previous commit.
int LiveFile::commit_rest() {
  return reported(path_, [&] {
    if (mapped_writable_ || anywhere_ || !written_.empty()) region_.commit();
  });
}

// Read-only mappings that are older than the live file become mappings of the file again.
void LiveFile::release_views() const {
  if (!read_views().any_of(data_)) return;
  struct stat status;
  int fd = VELLUM_REAL(open)(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && (VELLUM_REAL(fstat)(fd, &status) != 0 || status.st_ino != inode_ ||
                  status.st_dev != device_)) {
    VELLUM_REAL(close)(fd);
    fd = -1;
  }
  read_views().release(data_, fd >= 0 ? fd : left_.load());
  if (fd >= 0) VELLUM_REAL(close)(fd);
}

int LiveFile::leave(int fd, const mapped_io::Mappings& mappings) {
  if (fd < 0) return EBADF;
  const std::lock_guard commits(commit_mutex_);
  int error = commit_with({});  // concurrent with readers and writers: most of the work
  const std::unique_lock alone(size_mutex_);
  if (error == 0) error = commit_rest();
  if (error == 0) error = reported(path_, [&] { region_.close_and_leave_memory(); });
  if (error != 0) {
    VELLUM_REAL(close)(fd);
    return error;
  }
  left_ = fd;
  show_file(mappings);
  release_views();
  return 0;
}

// The region's memory equals the file: the program sees the same before and after.
void LiveFile::show_file(const mapped_io::Mappings& mappings) const {
  auto ranges = mappings.all();
  std::sort(ranges.begin(), ranges.end());
  std::byte* free = data_;
  for (const auto& [begin, end] : ranges) {
    if (begin > free) VELLUM_REAL(munmap)(free, static_cast<std::size_t>(begin - free));
    std::byte* const from = std::max(begin, free);
    if (from >= end) continue;
    VELLUM_REAL(mmap)(from, static_cast<std::size_t>(end - from), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, left_, from - data_);
    free = end;
  }
  std::byte* const last = data_ + capacity_bytes_;
  if (free < last) VELLUM_REAL(munmap)(free, static_cast<std::size_t>(last - free));
}

// REQUIRES: size_mutex_.
ssize_t LiveFile::write_left(const void* from, std::size_t length_bytes,
                             std::uint64_t& offset_bytes, bool append) const {
  if (append) offset_bytes = static_cast<std::uint64_t>(VELLUM_REAL(lseek)(left_, 0, SEEK_END));
  return VELLUM_REAL(pwrite)(left_, from, length_bytes, static_cast<off_t>(offset_bytes));
}

// The mapping is the child's own copy: stores to it would be lost.
void LiveFile::protect_inherited() noexcept {
  if (left_ >= 0) return;
  try {
    region::add_route(data_, data_ + region_.size_bytes(), this);
  } catch (const std::exception&) {  // then no message is printed
  }
  VELLUM_REAL(mprotect)(data_, region_.size_bytes(), PROT_READ);
}

// Called only in a child of fork(2): the region's own faults are handled by the region.
region::FaultResult LiveFile::on_fault(const region::Fault& fault) noexcept {
  if (fault.is_write && fault.signal_number == SIGSEGV)
    syscall(SYS_write, STDERR_FILENO, inherited_message_.data(), inherited_message_.size());
  return region::FaultResult::not_ours;
}

}  // namespace vellum::preload
