// What makes a file durable, and its size: fsync(2), ftruncate(2), fallocate(2), stat(2).
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "base/error_number.hpp"
#include "shim/files.hpp"
#include "shim/real.hpp"

namespace vellum::shim {
namespace {

std::shared_ptr<LiveFile> live(int fd) { return Files::instance().live(fd); }

std::shared_ptr<LiveFile> live(const char* path) {
  struct stat status;
  if (Inside::is() || !Files::instance().active() || VELLUM_REAL(stat)(path, &status) != 0)
    return nullptr;
  return Files::instance().live(status);
}

int truncate_live(LiveFile& file, off_t bytes) {
  return bytes < 0 ? EINVAL : file.resize(static_cast<std::uint64_t>(bytes));
}

int allocate(LiveFile& file, int mode, off_t offset, off_t bytes) {
  if (offset < 0 || bytes <= 0) return EINVAL;
  if (mode == FALLOC_FL_KEEP_SIZE) return 0;
  if (mode != 0) return EOPNOTSUPP;
  const auto end = static_cast<std::uint64_t>(offset) + static_cast<std::uint64_t>(bytes);
  return end <= file.size_bytes() ? 0 : file.resize(end);
}

// A file that has become shorter is so on the disk with the next commit only.
template <typename Status>
int with_size(int result, Status* status) {
  if (result != 0 || Inside::is() || !S_ISREG(status->st_mode)) return result;
  struct stat key{};
  key.st_dev = status->st_dev;
  key.st_ino = status->st_ino;
  if (const auto file = Files::instance().live(key))
    status->st_size = static_cast<off_t>(file->size_bytes());
  return result;
}

// Paths of files of which the program reads an old version lead to that.
const char* path_for(int directory, const char* path, std::string& storage) {
  if (Inside::is() || path == nullptr || *path == '\0') return path;
  return Files::instance().redirected(directory, path, storage);
}

}  // namespace
}  // namespace vellum::shim

using vellum::base::as_result;
using vellum::shim::live;
using vellum::shim::path_for;
using vellum::shim::with_size;

VELLUM_SHIM int fsync(int fd) {
  const auto file = live(fd);
  return file != nullptr ? as_result(file->flush()) : VELLUM_REAL(fsync)(fd);
}
VELLUM_SHIM int fdatasync(int fd) {
  const auto file = live(fd);
  return file != nullptr ? as_result(file->flush()) : VELLUM_REAL(fdatasync)(fd);
}
VELLUM_SHIM int syncfs(int fd) noexcept {
  const auto file = live(fd);
  if (file != nullptr && file->flush() != 0) return -1;
  return VELLUM_REAL(syncfs)(fd);
}
// It promises nothing by itself, unless it waits: sync_file_range(2).
VELLUM_SHIM int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags) {
  const auto file = live(fd);
  if (file == nullptr) return VELLUM_REAL(sync_file_range)(fd, offset, bytes, flags);
  return as_result((flags & SYNC_FILE_RANGE_WAIT_AFTER) != 0 ? file->flush() : 0);
}

#define VELLUM_SIZES(suffix)                                                                    \
  VELLUM_SHIM int ftruncate##suffix(int fd, off_t bytes) noexcept {                             \
    const auto file = live(fd);                                                                 \
    if (file == nullptr) return VELLUM_REAL(ftruncate##suffix)(fd, bytes);                      \
    return as_result(vellum::shim::Files::instance().writes(fd)                                 \
                         ? vellum::shim::truncate_live(*file, bytes)                            \
                         : EINVAL);                                                             \
  }                                                                                             \
  VELLUM_SHIM int truncate##suffix(const char* path, off_t bytes) noexcept {                    \
    const auto file = live(path);                                                               \
    if (file == nullptr) return VELLUM_REAL(truncate##suffix)(path, bytes);                     \
    return as_result(vellum::shim::truncate_live(*file, bytes));                                \
  }                                                                                             \
  VELLUM_SHIM int fallocate##suffix(int fd, int mode, off_t offset, off_t bytes) {              \
    const auto file = live(fd);                                                                 \
    if (file == nullptr) return VELLUM_REAL(fallocate##suffix)(fd, mode, offset, bytes);        \
    return as_result(vellum::shim::allocate(*file, mode, offset, bytes));                       \
  }                                                                                             \
  VELLUM_SHIM int posix_fallocate##suffix(int fd, off_t offset, off_t bytes) {                  \
    const auto file = live(fd);                                                                 \
    return file == nullptr ? VELLUM_REAL(posix_fallocate##suffix)(fd, offset, bytes)            \
                           : vellum::shim::allocate(*file, 0, offset, bytes);                   \
  }                                                                                             \
  VELLUM_SHIM int fstat##suffix(int fd, struct stat##suffix* status) noexcept {                 \
    return with_size(VELLUM_REAL(fstat##suffix)(fd, status), status);                           \
  }                                                                                             \
  VELLUM_SHIM int stat##suffix(const char* path, struct stat##suffix* status) noexcept {        \
    std::string storage;                                                                        \
    const char* const at = path_for(AT_FDCWD, path, storage);                                   \
    return with_size(VELLUM_REAL(stat##suffix)(at, status), status);                            \
  }                                                                                             \
  VELLUM_SHIM int lstat##suffix(const char* path, struct stat##suffix* status) noexcept {       \
    std::string storage;                                                                        \
    const char* const at = path_for(AT_FDCWD, path, storage);                                   \
    return with_size(VELLUM_REAL(lstat##suffix)(at, status), status);                           \
  }                                                                                             \
  VELLUM_SHIM int fstatat##suffix(int directory, const char* path, struct stat##suffix* status, \
                                  int flags) noexcept {                                         \
    std::string storage;                                                                        \
    const char* const at = path_for(directory, path, storage);                                  \
    return with_size(VELLUM_REAL(fstatat##suffix)(directory, at, status, flags), status);       \
  }
VELLUM_SIZES()
VELLUM_SIZES(64)

VELLUM_SHIM int statx(int directory, const char* path, int flags, unsigned mask,
                      struct statx* status) noexcept {
  std::string storage;
  const char* const at = path_for(directory, path, storage);
  const int result = VELLUM_REAL(statx)(directory, at, flags, mask, status);
  if (result != 0 || vellum::shim::Inside::is()) return result;
  struct stat key{};
  key.st_dev = makedev(status->stx_dev_major, status->stx_dev_minor);
  key.st_ino = status->stx_ino;
  if (const auto file = vellum::shim::Files::instance().live(key))
    status->stx_size = file->size_bytes();
  return result;
}
