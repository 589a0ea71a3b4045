#include "memory/shared/shared_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/fail.hpp"
#include "base/parse_number.hpp"

namespace vellum::region {
namespace {

constexpr std::string_view kPrefix = "vellum-";
constexpr int kLockTries = 200;
constexpr useconds_t kLockPauseUs = 1000;
constexpr std::uint64_t kMinAvailablePart = 16;  // of the machine's memory
constexpr std::uint64_t kMaxSystemPart = 2;      // of the file system

// A directory of a file system in memory, as a descriptor; -1: it is not one.
int open_directory(const char* path) noexcept {
  const int fd = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  struct statfs status{};
  if (::fstatfs(fd, &status) == 0 && status.f_type == TMPFS_MAGIC) return fd;
  ::close(fd);
  return -1;
}

bool has_header(int fd, const struct stat& status) noexcept {
  const std::string_view start = kSharedHeaderStart;
  char text[64];
  const off_t at = status.st_size - static_cast<off_t>(kSharedHeaderBytes);
  return at >= 0 && ::pread(fd, text, start.size(), at) == static_cast<ssize_t>(start.size()) &&
         start == std::string_view(text, start.size());
}

std::vector<std::string> shared_names(int directory) {
  std::vector<std::string> names;
  const int fd = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = fd < 0 ? nullptr : ::fdopendir(fd);
  if (entries == nullptr) {
    if (fd >= 0) ::close(fd);
    return names;
  }
  while (const dirent* const entry = ::readdir(entries)) {
    if (std::string_view(entry->d_name).starts_with(kPrefix)) names.emplace_back(entry->d_name);
  }
  ::closedir(entries);
  return names;
}

struct KeptFile {
  std::string name;
  std::uint64_t bytes, taken_bytes;  // of its size; of the file system
  timespec opened;
};

std::vector<KeptFile> kept_files(int directory) {
  std::vector<KeptFile> files;
  for (std::string& name : shared_names(directory)) {
    struct stat status{};
    if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    files.push_back({std::move(name), static_cast<std::uint64_t>(status.st_size),
                     static_cast<std::uint64_t>(status.st_blocks) * 512, status.st_mtim});
  }
  std::ranges::sort(files, [](const KeptFile& a, const KeptFile& b) {
    return std::tie(a.opened.tv_sec, a.opened.tv_nsec) <
           std::tie(b.opened.tv_sec, b.opened.tv_nsec);
  });
  return files;
}

struct MachineMemory {
  std::uint64_t total_bytes = 0, available_bytes = UINT64_MAX;
  bool is_short_with(std::uint64_t more_bytes) const noexcept {
    const std::uint64_t least = total_bytes / kMinAvailablePart;
    return available_bytes < least || available_bytes - least < more_bytes;
  }
};

MachineMemory machine_memory() {
  MachineMemory out;
  std::ifstream in("/proc/meminfo");
  std::uint64_t kib = 0;
  for (std::string name, unit; in >> name >> kib && std::getline(in, unit);) {
    if (name == "MemTotal:") out.total_bytes = kib * 1024;
    if (name == "MemAvailable:") out.available_bytes = kib * 1024;
  }
  return out;
}

// False: the file has a reader, or is no shared file. Its layout may be another one, so the lock is
// on all bytes.
template <typename Body>
bool while_unread(int directory, const char* name, const Body& body) noexcept {
  const int fd = open_in_share_directory(directory, name);
  if (fd < 0) return false;
  struct stat status{};
  const bool done = ::fstat(fd, &status) == 0 && is_own_shared_file(status) &&
                    status.st_nlink == 1 && has_header(fd, status) &&
                    set_shared_lock(fd, F_WRLCK, 0, 0) && body();
  ::close(fd);
  return done;
}

bool is_unread(int directory, const char* name) noexcept {
  return while_unread(directory, name, [] { return true; });
}

// One process at a time, by a lock on the directory.
bool lock_directory(int directory) noexcept {
  for (int tries = 0; tries < kLockTries; ++tries) {
    if (::flock(directory, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    ::usleep(kLockPauseUs);
  }
  return false;
}

}  // namespace

int open_share_directory() noexcept {
  if (const char* const given = ::secure_getenv("VELLUM_SHARE_DIRECTORY"))
    return open_directory(given);
  const int fd = open_directory("/dev/shm");
  const char* const runtime = ::secure_getenv("XDG_RUNTIME_DIR");
  return fd >= 0 || runtime == nullptr ? fd : open_directory(runtime);
}

// The share directory may be /dev/shm, where every user can create a name.
int open_kept_directory() noexcept {
  const int parent = open_share_directory();
  if (parent < 0) return -1;
  char name[64];
  *fmt::format_to_n(name, sizeof name - 1, "vellum-kept-{}", ::geteuid()).out = '\0';
  ::mkdirat(parent, name, 0700);
  int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  ::close(parent);
  struct stat status{};
  if (fd >= 0 &&
      (::fstat(fd, &status) != 0 || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0)) {
    ::close(fd);
    fd = -1;
  }
  return fd;
}

std::uint64_t kept_limit_bytes() {
  const char* const text = ::secure_getenv("VELLUM_KEEP_VERSIONS");
  if (text == nullptr || *text == '\0') return 0;
  const auto limit = base::parse_number<std::uint64_t>(text);
  if (!limit.has_value()) {
    fail(Errc::invalid_argument, "VELLUM_KEEP_VERSIONS is '{}': it must be a number of bytes",
         text);
  }
  return *limit;
}

int open_in_share_directory(int directory, const char* name) noexcept {
  return ::openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

bool is_own_shared_file(const struct stat& status) noexcept {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 077) == 0 &&
         status.st_nlink <= 1;
}

// The bare system call: `vellum run` replaces fcntl(2), and this one runs in the fault handler.
bool set_shared_lock(int fd, short kind, std::uint64_t first, std::uint64_t count) noexcept {
  struct flock lock{};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(first);
  lock.l_len = static_cast<off_t>(count);
  const int saved_errno = errno;
  long result;
  do {
    result = ::syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock);
  } while (result < 0 && errno == EINTR);
  errno = saved_errno;
  return result == 0;
}

bool remove_unread(int directory, const char* name) noexcept {
  return while_unread(directory, name, [&] { return ::unlinkat(directory, name, 0) == 0; });
}

void remove_leftovers(int directory) {
  for (const std::string& name : shared_names(directory)) remove_unread(directory, name.c_str());
}

void drop_kept_if_short_of_memory(int directory) {
  if (machine_memory().is_short_with(0)) remove_leftovers(directory);
}

KeptFilesLock::KeptFilesLock(int directory) : directory_(directory) {
  forked_.keep_from_children(directory);
  locked_ = lock_directory(directory);
}

KeptFilesLock::~KeptFilesLock() {
  if (locked_) ::flock(directory_, LOCK_UN);
}

// Removes nothing unless the file fits then.
bool KeptFilesLock::make_room(std::uint64_t file_bytes, std::uint64_t limit_bytes) {
  if (!locked_) return false;
  struct statvfs system{};
  if (::fstatvfs(directory_, &system) != 0) return false;
  const std::uint64_t limit =
      std::min(limit_bytes, std::uint64_t{system.f_blocks} * system.f_frsize / kMaxSystemPart);
  const std::uint64_t available = std::uint64_t{system.f_bavail} * system.f_frsize;
  if (file_bytes > limit || machine_memory().is_short_with(file_bytes)) return false;
  const std::vector<KeptFile> files = kept_files(directory_);
  std::uint64_t sum = file_bytes, freed = 0;
  for (const KeptFile& file : files) sum += file.bytes;
  const auto fits = [&] { return sum <= limit && available + freed >= file_bytes; };
  std::vector<const KeptFile*> unread;
  for (const KeptFile& oldest : files) {
    if (fits()) break;
    if (!is_unread(directory_, oldest.name.c_str())) continue;
    unread.push_back(&oldest);
    sum -= oldest.bytes;
    freed += oldest.taken_bytes;
  }
  if (!fits()) return false;
  return std::ranges::all_of(
      unread, [&](const KeptFile* file) { return remove_unread(directory_, file->name.c_str()); });
}

}  // namespace vellum::region
