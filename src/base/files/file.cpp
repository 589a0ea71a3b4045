// base/files/file.cpp: posix_fs(), the real file system.
#include "base/files/file.hpp"
#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/size_limit.hpp"
#include "base/threads/fork_count.hpp"
#include "base/threads/forked_locks.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>
#include <vellum/error.hpp>

namespace vellum::base {
namespace {

constexpr mode_t kFileMode = 0666;  // less the umask's bits
constexpr mode_t kDirectoryMode = 0777;

Errc errc_of(int error) noexcept {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Errc::no_space;
    case EROFS:
      return Errc::read_only;
    case ENOENT:
      return Errc::not_found;
    case EEXIST:
      return Errc::already_exists;
    case EOPNOTSUPP:
      return Errc::unsupported;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Errc::out_of_memory;
    default:
      return Errc::io;
  }
}

// No file has a name that is too long, for example FILE-lock of a FILE with a name of maximal
// length.
bool is_absence(int error) noexcept {
  return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  fail(errc_of(error), "{}: {}: {}", path, what, std::generic_category().message(error));
}

[[noreturn]] void fail(const std::string& path, const char* what) { fail(path, what, errno); }

[[noreturn]] void fail_beyond_limit(const std::string& path) {
  fail(Errc::no_space,
       "{}: the file would exceed the process's limit on file sizes, {} bytes (ulimit -f)", path,
       file_size_limit());
}

void check(int result, const std::string& path, const char* what) {
  if (result != 0) fail(path, what);
}

// Repeats the call while a signal interrupts it.
template <typename Call>
auto retry(Call call) noexcept {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  // Data that must be durable was synced before. Linux closes even when close(2) reports an error.
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

class PosixFile final : public File {
 public:
  PosixFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  // Without the unlock, a process that has the file mapped keeps the lock, for example a child of
  // fork(2).
  ~PosixFile() override {
    if (locked_ && locked_in_ == fork_count()) ::flock(fd_.get(), LOCK_UN);
    locks_.forget();
  }

  const std::string& path() const noexcept override { return path_; }
  void renamed(const std::string& path) override { path_ = path; }
  std::uint64_t size_bytes() const override { return static_cast<std::uint64_t>(stat().st_size); }
  std::uint64_t allocated_bytes() const override {
    return static_cast<std::uint64_t>(stat().st_blocks) *
           512;  // independent of st_blksize: stat(2)
  }

  void pread(std::span<std::byte> out, std::uint64_t offset_bytes) const override;
  int try_pread(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept override;
  void pwrite(std::span<const std::byte> bytes, std::uint64_t offset_bytes) override;

  void sync_data() override {
    check(retry([&] { return ::fdatasync(fd_.get()); }), path_, "fdatasync");
  }
  void begin_read(std::uint64_t offset_bytes, std::uint64_t length_bytes) const noexcept override {
    ::posix_fadvise(fd_.get(), static_cast<off_t>(offset_bytes), static_cast<off_t>(length_bytes),
                    POSIX_FADV_WILLNEED);
  }
  void begin_flush(std::uint64_t offset_bytes, std::uint64_t length_bytes) noexcept override {
    ::sync_file_range(fd_.get(), static_cast<off_t>(offset_bytes), static_cast<off_t>(length_bytes),
                      SYNC_FILE_RANGE_WRITE);
  }
  void truncate(std::uint64_t size_bytes) override {
    const auto size = static_cast<off_t>(size_bytes);
    if (!may_have_size(size_bytes)) fail_beyond_limit(path_);
    check(retry([&] { return ::ftruncate(fd_.get(), size); }), path_, "truncate");
  }
  void allocate(std::uint64_t offset_bytes, std::uint64_t length_bytes) override {
    if (!may_have_size(offset_bytes + length_bytes)) fail_beyond_limit(path_);
    check(fallocate(0, offset_bytes, length_bytes), path_, "allocate");
  }
  void punch(std::uint64_t offset_bytes, std::uint64_t length_bytes) override {
    constexpr int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    check(fallocate(mode, offset_bytes, length_bytes), path_, "punch hole");
  }

  void take_access_of(const File& other) override {
    struct stat wanted{};
    check(::fstat(other.descriptor(), &wanted), other.path(), "stat");
    // Only root may change the owner. fchown(2) is called first, since it clears bits of the mode.
    if (::fchown(fd_.get(), wanted.st_uid, wanted.st_gid) != 0 && errno != EPERM)
      fail(path_, "change the owner");
    check(::fchmod(fd_.get(), wanted.st_mode & 0777), path_, "change the permissions");
    take_access_list_of(other);
  }
  void take_attributes_of(const File& other) override;
  std::size_t read_some(std::span<std::byte> out, std::uint64_t offset_bytes) const override {
    const ssize_t got = retry([&] {
      return ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset_bytes));
    });
    if (got < 0) fail(path_, "read");
    return static_cast<std::size_t>(got);
  }
  bool trusted_beside(const File& other) const override {
    struct stat theirs{};
    check(::fstat(other.descriptor(), &theirs), other.path(), "stat");
    const uid_t owner = stat().st_uid;
    return owner == theirs.st_uid || owner == 0;
  }
  bool try_lock_exclusive() override { return try_lock(LOCK_EX); }
  bool try_lock_shared() override { return try_lock(LOCK_SH); }
  bool pin_byte(std::uint64_t offset_bytes) override { return lock_byte(F_RDLCK, offset_bytes); }
  bool try_lock_byte(std::uint64_t offset_bytes) override {
    return lock_byte(F_WRLCK, offset_bytes);
  }
  bool byte_locked(std::uint64_t offset_bytes) const override {
    struct flock lock = make_lock(F_RDLCK, offset_bytes, 1);
    check(retry([&] { return ::fcntl(fd_.get(), F_OFD_GETLK, &lock); }), path_, "look for locks");
    return lock.l_type != F_UNLCK;
  }
  void unpin_byte(std::uint64_t offset_bytes) override {
    check(range_lock(F_OFD_SETLK, F_UNLCK, offset_bytes, 1), path_, "unpin");
  }
  std::vector<std::uint64_t> pinned_bytes() const override;
  bool replaced() const override;
  // Changes the descriptor's own offset, which is not used.
  std::uint64_t next_data(std::uint64_t offset_bytes) const override {
    const off_t found = ::lseek(fd_.get(), static_cast<off_t>(offset_bytes), SEEK_DATA);
    if (found >= 0) return static_cast<std::uint64_t>(found);
    return errno == ENXIO ? UINT64_MAX : offset_bytes;
  }
  std::uint64_t next_hole(std::uint64_t offset_bytes) const override {
    const off_t found = ::lseek(fd_.get(), static_cast<off_t>(offset_bytes), SEEK_HOLE);
    return found >= 0 ? static_cast<std::uint64_t>(found) : UINT64_MAX;
  }
  FileIdentity identity() const override;
  int descriptor() const noexcept override { return fd_.get(); }

 private:
  void take_access_list_of(const File& other);

  struct stat stat() const {
    struct stat status{};
    check(::fstat(fd_.get(), &status), path_, "stat");
    return status;
  }

  int range_lock(int command, short kind, std::uint64_t offset_bytes,
                 std::uint64_t length_bytes) const noexcept {
    struct flock lock = make_lock(kind, offset_bytes, length_bytes);
    return retry([&] { return ::fcntl(fd_.get(), command, &lock); });
  }
  static struct flock make_lock(short kind, std::uint64_t offset_bytes,
                                std::uint64_t length_bytes) noexcept {
    struct flock lock{};
    lock.l_type = kind;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(offset_bytes);
    lock.l_len = static_cast<off_t>(length_bytes);
    return lock;
  }

  bool lock_byte(short kind, std::uint64_t offset_bytes) {
    locks_.keep_from_children(fd_.get());
    if (range_lock(F_OFD_SETLK, kind, offset_bytes, 1) == 0) return true;
    if (errno != EAGAIN && errno != EACCES) fail(path_, "pin");
    return false;
  }

  bool try_lock(int kind) {
    locks_.keep_from_children(fd_.get());
    if (retry([&] { return ::flock(fd_.get(), kind | LOCK_NB); }) == 0) {
      locked_ = true;
      locked_in_ = fork_count();
      return true;
    }
    if (errno != EWOULDBLOCK) fail(path_, "lock");
    return false;
  }

  int fallocate(int mode, std::uint64_t offset_bytes, std::uint64_t length_bytes) noexcept {
    return retry([&] {
      return ::fallocate(fd_.get(), mode, static_cast<off_t>(offset_bytes),
                         static_cast<off_t>(length_bytes));
    });
  }

  std::string path_;
  Descriptor fd_;
  ForkedLocks locks_;  // releases its entry before `fd_` is closed
  bool locked_ = false;
  std::uint32_t locked_in_ = 0;
};

// In the fault handler, errno belongs to the interrupted program.
int PosixFile::try_pread(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept {
  const int saved_errno = errno;
  int result = 0;
  while (!out.empty() && result == 0) {
    const ssize_t got =
        ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset_bytes));
    if (got > 0) {
      out = out.subspan(static_cast<std::size_t>(got));
      offset_bytes += static_cast<std::uint64_t>(got);
    } else if (got == 0) {
      result = ENODATA;
    } else if (errno != EINTR) {
      result = errno;
    }
  }
  errno = saved_errno;
  return result;
}

void PosixFile::pread(std::span<std::byte> out, std::uint64_t offset_bytes) const {
  const int error = try_pread(out, offset_bytes);
  if (error == 0) return;
  const std::string what =
      "read of " + std::to_string(out.size()) + " bytes at offset " + std::to_string(offset_bytes);
  if (error == ENODATA) fail(Errc::corrupted, "{}: truncated: {}", path_, what);
  fail(path_, what.c_str(), error);
}

void PosixFile::pwrite(std::span<const std::byte> bytes, std::uint64_t offset_bytes) {
  while (!bytes.empty()) {
    if (!may_write_from(offset_bytes)) fail_beyond_limit(path_);
    const ssize_t put = retry([&] {
      return ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset_bytes));
    });
    if (put < 0) fail(path_, "write");
    if (put == 0) fail(path_, "write", ENOSPC);  // no progress and no error: never loop
    assert(static_cast<std::size_t>(put) <= bytes.size());
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset_bytes += static_cast<std::uint64_t>(put);
  }
}

namespace {

constexpr const char* kAccessList = "system.posix_acl_access";

// nullopt: the file does not have the attribute, or its file system has no attributes.
std::optional<std::vector<char>> attribute_of(const File& file, const char* name) {
  for (;;) {
    const ssize_t bytes = ::fgetxattr(file.descriptor(), name, nullptr, 0);
    if (bytes < 0 && (errno == ENODATA || errno == EOPNOTSUPP)) return std::nullopt;
    if (bytes < 0) fail(file.path(), name);
    std::vector<char> value(static_cast<std::size_t>(bytes) + 1);
    const ssize_t got = ::fgetxattr(file.descriptor(), name, value.data(), value.size());
    if (got < 0 && errno != ERANGE && errno != ENODATA) fail(file.path(), name);
    if (got < 0) continue;  // another process has changed it meanwhile
    value.resize(static_cast<std::size_t>(got));
    return value;
  }
}

}  // namespace

// With only the mode, the group would have the rights of the list's mask. Without a list, this file
// must not keep the default list of its directory.
void PosixFile::take_access_list_of(const File& other) {
  if (const auto list = attribute_of(other, kAccessList)) {
    check(::fsetxattr(fd_.get(), kAccessList, list->data(), list->size(), 0), path_,
          "change the access list");
  } else if (::fremovexattr(fd_.get(), kAccessList) != 0 && errno != ENODATA &&
             errno != EOPNOTSUPP) {
    fail(path_, "remove the access list");
  }
}

// Attributes outside `user.` may need privileges. Without them, the attribute is not copied.
void PosixFile::take_attributes_of(const File& other) {
  const ssize_t bytes = ::flistxattr(other.descriptor(), nullptr, 0);
  if (bytes <= 0) return;
  std::vector<char> names(static_cast<std::size_t>(bytes) + 1);
  const ssize_t got = ::flistxattr(other.descriptor(), names.data(), names.size() - 1);
  for (ssize_t at = 0; at < got;) {
    const std::string name = names.data() + at;
    at += static_cast<ssize_t>(name.size()) + 1;
    if (name == kAccessList) continue;
    const auto value = attribute_of(other, name.c_str());
    if (!value) continue;
    const int done = ::fsetxattr(fd_.get(), name.c_str(), value->data(), value->size(), 0);
    if (done != 0 && name.starts_with("user.") && errno != EOPNOTSUPP) fail(path_, name.c_str());
  }
}

// The kernel reports any one lock of a range. The ranges before and after it are queried next.
std::vector<std::uint64_t> PosixFile::pinned_bytes() const {
  constexpr std::uint64_t kEnd = INT64_MAX;
  std::vector<std::uint64_t> found;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges{{0, kEnd}};
  while (!ranges.empty()) {
    const auto [from, to] = ranges.back();
    ranges.pop_back();
    if (from >= to) continue;
    struct flock lock = make_lock(F_WRLCK, from, to - from);
    check(retry([&] { return ::fcntl(fd_.get(), F_OFD_GETLK, &lock); }), path_, "look for locks");
    if (lock.l_type == F_UNLCK) continue;
    const auto start = static_cast<std::uint64_t>(lock.l_start);
    // The kernel reports adjacent pins as one lock. A much longer lock is not ours.
    if (lock.l_len <= 0 || lock.l_len > 64) fail(path_, "look for locks", EBUSY);
    const std::uint64_t end = start + static_cast<std::uint64_t>(lock.l_len);
    for (std::uint64_t at = std::max(from, start); at < std::min(end, to); ++at)
      found.push_back(at);
    ranges.emplace_back(from, std::min(start, to));
    ranges.emplace_back(std::max(end, from), to);
  }
  std::sort(found.begin(), found.end());
  assert(std::adjacent_find(found.begin(), found.end()) == found.end());
  return found;
}

// Does not use the link count: a backup may have a hard link to the old file.
bool PosixFile::replaced() const {
  struct stat named{};
  if (::lstat(path_.c_str(), &named) != 0) {
    if (errno != ENOENT) fail(path_, "stat");
    return true;
  }
  const struct stat mine = stat();
  return mine.st_dev != named.st_dev || mine.st_ino != named.st_ino;
}

FileIdentity PosixFile::identity() const {
  const struct stat s = stat();
  FileIdentity out{s.st_dev,
                   s.st_ino,
                   static_cast<std::uint64_t>(s.st_size),
                   nanoseconds_of(s.st_mtim),
                   nanoseconds_of(s.st_ctim),
                   0};
  struct statx more{};
  if (::statx(fd_.get(), "", AT_EMPTY_PATH, STATX_BTIME, &more) == 0 &&
      (more.stx_mask & STATX_BTIME) != 0) {
    out.born_ns =
        nanoseconds_of({more.stx_btime.tv_sec, static_cast<long>(more.stx_btime.tv_nsec)});
  }
  return out;
}

int open_flags(OpenMode mode) noexcept {
  // O_NONBLOCK: opening a FIFO must not wait for a peer. A regular file ignores it.
  constexpr int always = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  switch (mode) {
    case OpenMode::read_only:
      return always | O_RDONLY;
    case OpenMode::read_write:
      return always | O_RDWR;
    case OpenMode::create_new:
      return always | O_RDWR | O_CREAT | O_EXCL;
  }
  return always | O_RDONLY;
}

// Errors of open(2) for a symbolic link, a socket or device without a driver, and a directory.
bool means_not_a_regular_file(int error) noexcept {
  return error == ELOOP || error == ENXIO || error == ENODEV || error == EISDIR;
}

[[noreturn]] void fail_not_regular(const std::string& path) {
  fail(Errc::corrupted, "{}: not a regular file", path);
}

void check_regular(int fd, const std::string& path) {
  struct stat status{};
  check(::fstat(fd, &status), path, "stat");
  if (!S_ISREG(status.st_mode)) fail_not_regular(path);
}

// A name in a directory, for the calls of the *at() family.
struct AtPath {
  Descriptor directory{-1};
  std::string name;
  int fd() const noexcept { return directory.get() < 0 ? AT_FDCWD : directory.get(); }
  const char* path() const noexcept { return name.c_str(); }
};

// RENAME_NOREPLACE for file systems without it (NFS). Like it, link(2) and mkdir(2) never replace a
// file. A directory may then be renamed over the empty one.
void rename_new_in_two_steps(const AtPath& from, const AtPath& to, const std::string& path) {
  struct stat status{};
  check(::fstatat(from.fd(), from.path(), &status, AT_SYMLINK_NOFOLLOW), path, "stat");
  if (S_ISDIR(status.st_mode)) {
    check(::mkdirat(to.fd(), to.path(), kDirectoryMode), path, "mkdir");
    check(::renameat(from.fd(), from.path(), to.fd(), to.path()), path, "rename");
    return;
  }
  check(::linkat(from.fd(), from.path(), to.fd(), to.path(), 0), path, "link");
  check(::unlinkat(from.fd(), from.path(), 0), path, "unlink");
}

struct CloseDirectory {
  void operator()(DIR* stream) const noexcept { ::closedir(stream); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

// The file type of an entry, not of a symbolic link's target.
mode_t kind_of(DIR* stream, const dirent& entry) noexcept {
  if (entry.d_type != DT_UNKNOWN) return static_cast<mode_t>(DTTOIF(entry.d_type));
  struct stat status{};
  if (::fstatat(::dirfd(stream), entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return status.st_mode & S_IFMT;
}

struct NoDirectory : Error {
  using Error::Error;
};

// For a directory that could not be opened without following links.
[[noreturn]] void fail_to_open(int directory, const std::string& name, const std::string& path) {
  const int error = errno;
  struct stat status{};
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(status.st_mode)) {
    fail(Errc::corrupted, "{}: '{}' is a link, and links are not followed here", path, name);
  }
  if (error == ENOTDIR) throw NoDirectory(Errc::io, path + ": '" + name + "' is no directory");
  fail(path, "open directory", error);
}

class PosixFs : public Fs {
 public:
  std::unique_ptr<File> open(const std::string& path, OpenMode mode) override {
    const AtPath at = resolve(path);
    Descriptor fd(retry([&] { return ::openat(at.fd(), at.path(), open_flags(mode), kFileMode); }));
    if (fd.get() < 0) {
      if (means_not_a_regular_file(errno)) fail_not_regular(path);
      fail(path, "open");
    }
    check_regular(fd.get(), path);
    return std::make_unique<PosixFile>(path, std::move(fd));
  }

  void rename(const std::string& from, const std::string& to) override {
    const AtPath old_path = resolve(from), new_path = resolve(to);
    check(::renameat(old_path.fd(), old_path.path(), new_path.fd(), new_path.path()), to, "rename");
  }

  void rename_new(const std::string& from, const std::string& to) override {
    const AtPath old_path = resolve(from), new_path = resolve(to);
    if (::renameat2(old_path.fd(), old_path.path(), new_path.fd(), new_path.path(),
                    RENAME_NOREPLACE) == 0)
      return;
    if (errno != EINVAL && errno != ENOSYS) fail(to, "rename");
    rename_new_in_two_steps(old_path, new_path, to);
  }

  void link(const std::string& from, const std::string& to) override {
    const AtPath old_path = resolve(from), new_path = resolve(to);
    check(::linkat(old_path.fd(), old_path.path(), new_path.fd(), new_path.path(), 0), to, "link");
  }

  void unlink(const std::string& path) override { remove(path, 0, "unlink"); }

  void make_directory(const std::string& path) override {
    const AtPath at = resolve(path);
    check(::mkdirat(at.fd(), at.path(), kDirectoryMode), path, "mkdir");
  }

  void remove_directory(const std::string& path) override { remove(path, AT_REMOVEDIR, "rmdir"); }

  void sync_directory(const std::string& path) override {
    const Descriptor fd = open_directory(path);
    check(retry([&] { return ::fsync(fd.get()); }), path, "fsync");
  }

  std::vector<DirEntry> list(const std::string& path) const override;
  bool exists(const std::string& path) const override { return kind(path) != 0; }
  bool is_directory(const std::string& path) const override { return S_ISDIR(kind(path)); }

  std::optional<DirectoryState> directory_state(const std::string& path) const override {
    const Descriptor fd = open_directory(path);
    struct stat status{};
    check(::fstat(fd.get(), &status), path, "stat");
    return DirectoryState{nanoseconds_of(status.st_mtim), nanoseconds_of(status.st_ctim),
                          status.st_ino};
  }

  void set_directory_time(const std::string& path, std::int64_t time_ns) override {
    assert(time_ns >= 0);
    constexpr std::int64_t kSecond = 1'000'000'000;
    const Descriptor fd = open_directory(path);
    const timespec times[] = {{0, UTIME_OMIT}, {time_ns / kSecond, time_ns % kSecond}};
    check(::futimens(fd.get(), times), path, "set the time");
  }

 protected:
  // The path in the form for the calls.
  virtual AtPath resolve(const std::string& path) const { return {Descriptor(-1), path}; }
  // Whether to follow a link in place of the directory.
  virtual bool follows(const std::string&) const noexcept { return true; }

 private:
  void remove(const std::string& path, int flags, const char* what) {
    const AtPath at = resolve(path);
    check(::unlinkat(at.fd(), at.path(), flags), path, what);
  }

  // 0: no file has this path.
  mode_t kind(const std::string& path) const {
    struct stat status{};
    try {
      const AtPath at = resolve(path);
      if (::fstatat(at.fd(), at.path(), &status, AT_SYMLINK_NOFOLLOW) == 0) return status.st_mode;
      if (!is_absence(errno)) fail(path, "stat");
    } catch (const NoDirectory&) {
    } catch (const Error& e) {
      if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
    }
    return 0;
  }

  Descriptor open_directory(const std::string& path) const {
    const AtPath at = resolve(path);
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (follows(path) ? 0 : O_NOFOLLOW);
    Descriptor fd(retry([&] { return ::openat(at.fd(), at.path(), flags); }));
    if (fd.get() >= 0) return fd;
    if (!follows(path)) fail_to_open(at.fd(), at.name, path);
    fail(path, "open directory");
  }
};

std::vector<DirEntry> PosixFs::list(const std::string& path) const {
  Descriptor fd = open_directory(path);
  const DirectoryStream stream(::fdopendir(fd.get()));
  if (stream == nullptr) fail(path, "open directory");
  fd.release();  // the stream owns it
  std::vector<DirEntry> entries;
  for (;;) {
    errno = 0;  // the only way to distinguish the end from an error
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const mode_t kind = kind_of(stream.get(), *entry);
    entries.push_back({std::move(name), S_ISREG(kind), S_ISDIR(kind)});
  }
  if (errno != 0) fail(path, "read directory");
  std::sort(entries.begin(), entries.end(),
            [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
  return entries;
}

// Opens each directory from the root down. Without `..`, this has the effect of openat2(2) with
// RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, on every kernel.
class BeneathFs final : public PosixFs {
 public:
  explicit BeneathFs(std::string root) : root_(std::move(root)) {}

 private:
  bool follows(const std::string& path) const noexcept override { return !is_beneath(path); }
  bool is_beneath(const std::string& path) const noexcept {
    return path.size() > root_.size() + 1 && path.starts_with(root_) && path[root_.size()] == '/';
  }

  AtPath resolve(const std::string& path) const override {
    if (!is_beneath(path)) return PosixFs::resolve(path);
    AtPath out{step(AT_FDCWD, root_, 0, path), ""};
    for (std::size_t at = root_.size() + 1; at <= path.size();) {
      const std::size_t slash = std::min(path.find('/', at), path.size());
      std::string part = path.substr(at, slash - at);
      at = slash + 1;
      if (part.empty() || part == ".") continue;
      if (part == "..") fail(Errc::invalid_argument, "{}: leads out of {}", path, root_);
      if (!out.name.empty()) {
        Descriptor next = step(out.directory.get(), out.name, O_NOFOLLOW, path);
        out = {std::move(next), ""};
      }
      out.name = std::move(part);
    }
    return out;
  }

  static Descriptor step(int directory, const std::string& name, int flags,
                         const std::string& path) {
    Descriptor fd(retry([&] {
      return ::openat(directory, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | flags);
    }));
    if (fd.get() >= 0) return fd;
    fail_to_open(directory, name, path);
  }

  const std::string root_;
};

}  // namespace

void Fs::set_directory_time(const std::string& path, std::int64_t) {
  fail(Errc::unsupported, "{}: this file system keeps no times of directories", path);
}

bool Fs::is_directory(const std::string& path) const {
  const std::size_t slash = path.rfind('/');
  const auto entries = list(path.substr(0, slash));
  return std::any_of(entries.begin(), entries.end(), [&](const DirEntry& e) {
    return e.is_directory && e.name == path.substr(slash + 1);
  });
}

std::shared_ptr<Fs> beneath(Fs& fs, const std::string& root) {
  if (dynamic_cast<PosixFs*>(&fs) != nullptr) return std::make_shared<BeneathFs>(root);
  return {std::shared_ptr<void>(), &fs};
}

Fs& posix_fs() {
  static PosixFs fs;
  return fs;
}

void unlink_quietly(Fs& fs, const std::string& path) noexcept {
  try {
    fs.unlink(path);
  } catch (const std::exception&) {
  }
}

}  // namespace vellum::base
