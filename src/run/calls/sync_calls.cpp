// A file's durability and size: fsync(2), ftruncate(2), fallocate(2), stat(2).
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "base/error_number.hpp"
#include "interfaces/mapped_io/durable.hpp"
#include "run/files/files.hpp"
#include "run/files/old_version.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

std::shared_ptr<LiveFile> live(int fd) { return Files::instance().live(fd); }

std::shared_ptr<LiveFile> live(const char* path) {
  struct stat status;
  if (ReentrancyGuard::is() || !Files::instance().active() || VELLUM_REAL(stat)(path, &status) != 0)
    return nullptr;
  return Files::instance().live(status);
}

int flush(LiveFile& file) { return Files::instance().commit_in_order(file, &LiveFile::flush); }

void commit_live() {
  Files& files = Files::instance();
  if (!ReentrancyGuard::is() && files.active() && !files.shares_memory()) files.commit_all();
}

int truncate_live(LiveFile& file, off_t bytes) {
  return bytes < 0 ? EINVAL : file.resize(static_cast<std::uint64_t>(bytes));
}

// Whether this is a watched file. One that this process does not have open for writing becomes live
// for the call, as with open(2), ftruncate(2) and close(2).
bool is_watched(const char* path) {
  struct stat status;
  const Files& files = Files::instance();
  return !ReentrancyGuard::is() && files.active() && path != nullptr &&
         VELLUM_REAL(stat)(path, &status) == 0 && S_ISREG(status.st_mode) &&
         FileNames::is_target(AT_FDCWD, path);
}

int truncate_watched(const char* path, off_t bytes) {
  if (bytes < 0) return EINVAL;
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = ftruncate(fd, bytes) == 0 ? 0 : errno;
  close(fd);
  return error;
}

int truncate_at(const char* path, off_t bytes, int (*in_kernel)(const char*, off_t) noexcept) {
  const auto file = live(path);
  if (file != nullptr) return base::as_result(truncate_live(*file, bytes));
  return is_watched(path) ? base::as_result(truncate_watched(path, bytes)) : in_kernel(path, bytes);
}

// Space is allocated on write, so only the visible effects happen: sizes and zeros. Inserting and
// removing ranges (FALLOC_FL_INSERT_RANGE, FALLOC_FL_COLLAPSE_RANGE) is not supported, as on many
// file systems.
int allocate(LiveFile& file, int fd, int mode, off_t offset, off_t bytes) {
  if (offset < 0 || bytes <= 0) return EINVAL;
  if (!Descriptors::writes(fd)) return EBADF;
  const bool keeps = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const int what = mode & ~FALLOC_FL_KEEP_SIZE;
  const bool punches = what == FALLOC_FL_PUNCH_HOLE && keeps;
  const bool zeroes = what == FALLOC_FL_ZERO_RANGE;
  if (what != 0 && what != FALLOC_FL_UNSHARE_RANGE && !punches && !zeroes) return EOPNOTSUPP;
  if (offset > INT64_MAX - bytes) return EFBIG;
  const auto from = static_cast<std::uint64_t>(offset), count = static_cast<std::uint64_t>(bytes);
  if (!keeps && from + count > file.size_bytes())
    if (const int error = file.resize(from + count)) return error;
  return punches || zeroes ? file.clear(from, count) : 0;
}

// On disk, a file becomes shorter only with the next commit.
template <typename Status>
int with_size(int result, Status* status) {
  if (result != 0 || ReentrancyGuard::is() || !S_ISREG(status->st_mode)) return result;
  struct stat key{};
  key.st_dev = status->st_dev;
  key.st_ino = status->st_ino;
  if (const auto file = Files::instance().live_with_size(key))
    status->st_size = static_cast<off_t>(file->size_bytes());
  return result;
}

}  // namespace
}  // namespace vellum::preload

using vellum::base::as_result;
using vellum::preload::flush;
using vellum::preload::live;
using vellum::preload::SeenPath;
using vellum::preload::with_size;

VELLUM_PRELOAD int fsync(int fd) {
  const auto file = live(fd);
  return file != nullptr ? as_result(flush(*file)) : VELLUM_REAL(fsync)(fd);
}
VELLUM_PRELOAD int fdatasync(int fd) {
  const auto file = live(fd);
  return file != nullptr ? as_result(flush(*file)) : VELLUM_REAL(fdatasync)(fd);
}
// Commits all live files: for those on other file systems than this descriptor's this is harmless.
VELLUM_PRELOAD int syncfs(int fd) noexcept {
  vellum::preload::commit_live();
  return VELLUM_REAL(syncfs)(fd);
}
VELLUM_PRELOAD void sync() noexcept {
  vellum::preload::commit_live();
  VELLUM_REAL(sync)();
}
VELLUM_PRELOAD int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags) {
  const auto file = live(fd);
  if (file == nullptr) return VELLUM_REAL(sync_file_range)(fd, offset, bytes, flags);
  if (const int refused = vellum::mapped_io::refuse_sync_range(offset, bytes, flags))
    return as_result(refused);
  return as_result(vellum::mapped_io::range_waits(flags) ? flush(*file) : 0);
}

#define VELLUM_SIZES(suffix)                                                                       \
  VELLUM_PRELOAD int ftruncate##suffix(int fd, off_t bytes) noexcept {                             \
    const auto file = live(fd);                                                                    \
    if (file == nullptr) return VELLUM_REAL(ftruncate##suffix)(fd, bytes);                         \
    return as_result(vellum::preload::Descriptors::writes(fd)                                      \
                         ? vellum::preload::truncate_live(*file, bytes)                            \
                         : EINVAL);                                                                \
  }                                                                                                \
  VELLUM_PRELOAD int truncate##suffix(const char* path, off_t bytes) noexcept {                    \
    return vellum::preload::change_at(AT_FDCWD, path, true, [&](const char* at) {                  \
      return vellum::preload::truncate_at(at, bytes, VELLUM_REAL(truncate##suffix));               \
    });                                                                                            \
  }                                                                                                \
  VELLUM_PRELOAD int fallocate##suffix(int fd, int mode, off_t offset, off_t bytes) {              \
    const auto file = live(fd);                                                                    \
    if (file == nullptr) return VELLUM_REAL(fallocate##suffix)(fd, mode, offset, bytes);           \
    return as_result(vellum::preload::allocate(*file, fd, mode, offset, bytes));                   \
  }                                                                                                \
  VELLUM_PRELOAD int posix_fallocate##suffix(int fd, off_t offset, off_t bytes) {                  \
    const auto file = live(fd);                                                                    \
    return file == nullptr ? VELLUM_REAL(posix_fallocate##suffix)(fd, offset, bytes)               \
                           : vellum::preload::allocate(*file, fd, 0, offset, bytes);               \
  }                                                                                                \
  VELLUM_PRELOAD int fstat##suffix(int fd, struct stat##suffix* status) noexcept {                 \
    return with_size(VELLUM_REAL(fstat##suffix)(fd, status), status);                              \
  }                                                                                                \
  VELLUM_PRELOAD int stat##suffix(const char* path, struct stat##suffix* status) noexcept {        \
    const SeenPath seen(AT_FDCWD, path);                                                           \
    return with_size(VELLUM_REAL(stat##suffix)(seen.c_str(), status), status);                     \
  }                                                                                                \
  VELLUM_PRELOAD int lstat##suffix(const char* path, struct stat##suffix* status) noexcept {       \
    const SeenPath seen(AT_FDCWD, path, false);                                                    \
    return with_size(VELLUM_REAL(lstat##suffix)(seen.c_str(), status), status);                    \
  }                                                                                                \
  VELLUM_PRELOAD int fstatat##suffix(int directory, const char* path, struct stat##suffix* status, \
                                     int flags) noexcept {                                         \
    const SeenPath seen(directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0);                      \
    return with_size(VELLUM_REAL(fstatat##suffix)(directory, seen.c_str(), status, flags),         \
                     status);                                                                      \
  }
VELLUM_SIZES()
VELLUM_SIZES(64)

VELLUM_PRELOAD int statx(int directory, const char* path, int flags, unsigned mask,
                         struct statx* status) noexcept {
  const SeenPath seen(directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0);
  const int result = VELLUM_REAL(statx)(directory, seen.c_str(), flags, mask, status);
  if (result != 0 || vellum::preload::ReentrancyGuard::is()) return result;
  struct stat key{};
  key.st_dev = makedev(status->stx_dev_major, status->stx_dev_minor);
  key.st_ino = status->stx_ino;
  if (const auto file = vellum::preload::Files::instance().live_with_size(key))
    status->stx_size = file->size_bytes();
  return result;
}
