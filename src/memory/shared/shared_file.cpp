#include "memory/shared/shared_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>
#include <vellum/version.hpp>

#include "base/bytes/checksum.hpp"
#include "base/bytes/hex.hpp"
#include "base/round_up.hpp"
#include "base/size_limit.hpp"
#include "format/journal.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/page_map/resolved_version.hpp"

namespace vellum::region {
namespace {

constexpr std::size_t kHeaderBytes = 4096;
constexpr std::size_t kWordBytes = 8;
constexpr int kLayout = 1;
constexpr std::string_view kHeaderStart = "vellum shared memory: ";
constexpr std::string_view kPrefix = "vellum-";
constexpr std::size_t kMaxChunks = 2u << 20;  // their words take 16 MiB
constexpr int kTries = 200;  // while other processes open, create and remove the file
constexpr useconds_t kPauseUs = 1000;

// A 128-bit hash of all added bytes, in order.
class NameHash {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    for (std::uint64_t& part : parts_) part = base::checksum64(bytes, part);
  }
  std::string hex() const { return fmt::format("{:016x}{:016x}", parts_[0], parts_[1]); }

 private:
  std::array<std::uint64_t, 2> parts_{1, 2};
};

// The bare system call: `vellum run` replaces fcntl(2), and this one runs in the fault handler.
bool set_lock(int fd, short kind, std::uint64_t first, std::uint64_t count) noexcept {
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

std::string header_of(const SharedLayout& layout) {
  const std::uint16_t one = 1;
  unsigned char low_first = 0;
  std::memcpy(&low_first, &one, 1);
  std::string header =
      fmt::format("{}layout {}, library {}, {}-endian, {} bytes in chunks of {}, {}\n",
                  kHeaderStart, kLayout, version(), low_first == 1 ? "little" : "big",
                  layout.content_bytes, layout.chunk_bytes, layout.version);
  header.resize(kHeaderBytes);
  return header;
}

// A directory of a file system in memory, as a descriptor; -1: it is not one.
int open_directory(const char* path) noexcept {
  const int fd = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  struct statfs status{};
  if (::fstatfs(fd, &status) == 0 && status.f_type == TMPFS_MAGIC) return fd;
  ::close(fd);
  return -1;
}

int open_share_directory() noexcept {
  if (const char* const given = ::secure_getenv("VELLUM_SHARE_DIRECTORY"))
    return open_directory(given);
  const int fd = open_directory("/dev/shm");
  const char* const runtime = ::secure_getenv("XDG_RUNTIME_DIR");
  return fd >= 0 || runtime == nullptr ? fd : open_directory(runtime);
}

// Whether it is a plain file that only this user can access, without a second name.
bool is_own(const struct stat& status) noexcept {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 077) == 0 &&
         status.st_nlink <= 1;
}

int open_file(int directory, const char* name) noexcept {
  return ::openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

bool has_header(int fd, const struct stat& status) noexcept {
  char text[kHeaderStart.size()];
  const off_t at = status.st_size - static_cast<off_t>(kHeaderBytes);
  return at >= 0 && ::pread(fd, text, sizeof text, at) == static_cast<ssize_t>(sizeof text) &&
         kHeaderStart == std::string_view(text, sizeof text);
}

// Removes a file that no reader has locked. A reader that opens it concurrently detects the
// removal. The file's layout may be another one, so the lock is on all bytes.
void remove_if_left(int directory, const char* name) noexcept {
  const int fd = open_file(directory, name);
  if (fd < 0) return;
  struct stat status{};
  if (::fstat(fd, &status) == 0 && is_own(status) && status.st_nlink == 1 &&
      has_header(fd, status) && set_lock(fd, F_WRLCK, 0, 0)) {
    ::unlinkat(directory, name, 0);
  }
  ::close(fd);
}

void remove_leftovers(int directory) {
  const int fd = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = fd < 0 ? nullptr : ::fdopendir(fd);
  if (entries == nullptr) {
    if (fd >= 0) ::close(fd);
    return;
  }
  std::vector<std::string> names;
  while (const dirent* const entry = ::readdir(entries)) {
    if (std::string_view(entry->d_name).starts_with(kPrefix)) names.emplace_back(entry->d_name);
  }
  ::closedir(entries);
  for (const std::string& name : names) remove_if_left(directory, name.c_str());
}

}  // namespace

std::string share_name(const store::StoreDirectory& store, const store::ResolvedVersion& version) {
  struct stat status{};
  if (::stat(store.path().c_str(), &status) != 0) return {};
  const std::uint64_t location[] = {status.st_dev, status.st_ino};
  NameHash hash;
  hash.add(std::as_bytes(std::span(location)));
  hash.add(format::encode_version(version.version));
  for (const format::CommitBody& commit : version.commits) hash.add(format::encode_commit(commit));
  return "vellum-" + base::hex(store.superblock().store_id) + "-" + hash.hex();
}

std::string SharedLayout::name() const { return fmt::format("{}-{}", version, chunk_bytes); }

std::uint64_t SharedLayout::header_at() const noexcept {
  return words_at() + base::round_up(chunks() * kWordBytes, kHeaderBytes);
}

std::uint64_t SharedLayout::file_bytes() const noexcept { return header_at() + kHeaderBytes; }

SharedFile::SharedFile(const SharedLayout& layout, int directory)
    : layout_(layout), name_(layout.name()), directory_(directory) {}

std::unique_ptr<SharedFile> SharedFile::open(const SharedLayout& layout) {
  const bool possible = !layout.version.empty() && layout.chunks() <= kMaxChunks;
  const int directory = possible ? open_share_directory() : -1;
  if (directory < 0) return nullptr;
  std::unique_ptr<SharedFile> file(new SharedFile(layout, directory));
  remove_leftovers(directory);
  return file->open_or_create() ? std::move(file) : nullptr;
}

bool SharedFile::open_or_create() {
  for (int tries = 0; tries < kTries; ++tries) {
    OpenedFile found = open_existing();
    if (found == OpenedFile::removed) found = create();
    if (found != OpenedFile::removed) return found == OpenedFile::usable;
    ::usleep(kPauseUs);
  }
  return false;
}

SharedFile::OpenedFile SharedFile::open_existing() {
  file_ = open_file(directory_, name_.c_str());
  if (file_ < 0) return errno == ENOENT ? OpenedFile::removed : OpenedFile::refused;
  forked_.keep_from_children(file_);
  // A reader that closes the file, or a process that removes leftovers, locks all of it briefly.
  const OpenedFile found =
      set_lock(file_, F_RDLCK, readers_byte(), 1) ? check() : OpenedFile::removed;
  if (found != OpenedFile::usable) close_file();
  return found;
}

// The memory of words and header is allocated now: a store to a word must not fail later.
SharedFile::OpenedFile SharedFile::create() {
  file_ = ::openat(directory_, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ < 0) return OpenedFile::refused;
  forked_.keep_from_children(file_);
  const std::string header = header_of(layout_);
  const std::string path = fmt::format("/proc/self/fd/{}", file_);
  const bool created =
      base::may_have_size(layout_.file_bytes()) &&
      ::fallocate(file_, 0, static_cast<off_t>(layout_.words_at()),
                  static_cast<off_t>(layout_.file_bytes() - layout_.words_at())) == 0 &&
      ::pwrite(file_, header.data(), header.size(), static_cast<off_t>(layout_.header_at())) ==
          static_cast<ssize_t>(header.size()) &&
      set_lock(file_, F_RDLCK, readers_byte(), 1);
  if (created &&
      ::linkat(AT_FDCWD, path.c_str(), directory_, name_.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    return OpenedFile::usable;
  }
  const OpenedFile found = created && errno == EEXIST ? OpenedFile::removed : OpenedFile::refused;
  close_file();
  return found;
}

// Checks an open file that this reader has locked.
SharedFile::OpenedFile SharedFile::check() const {
  struct stat status{};
  if (::fstat(file_, &status) != 0 || !is_own(status)) return OpenedFile::refused;
  if (status.st_nlink == 0) return OpenedFile::removed;
  const std::string wanted = header_of(layout_);
  std::string header(kHeaderBytes, '\0');
  const bool fits =
      static_cast<std::uint64_t>(status.st_size) == layout_.file_bytes() &&
      ::pread(file_, header.data(), header.size(), static_cast<off_t>(layout_.header_at())) ==
          static_cast<ssize_t>(header.size());
  return fits && header == wanted ? OpenedFile::usable : OpenedFile::refused;
}

// Of several readers that close concurrently, one detects that it is the last: each releases its
// own lock before it tries to lock all bytes.
SharedFile::~SharedFile() {
  if (file_ >= 0) {
    set_lock(file_, F_UNLCK, 0, 0);
    struct stat status{};
    if (set_lock(file_, F_WRLCK, 0, 0) && ::fstat(file_, &status) == 0 && status.st_nlink == 1)
      ::unlinkat(directory_, name_.c_str(), 0);
    close_file();
  }
  ::close(directory_);
}

void SharedFile::close_file() noexcept {
  forked_.forget();
  ::close(std::exchange(file_, -1));
}

bool SharedFile::try_lock(std::uint64_t first, std::uint64_t count) noexcept {
  return set_lock(file_, F_WRLCK, first, count);
}

void SharedFile::unlock(std::uint64_t first, std::uint64_t count) noexcept {
  set_lock(file_, F_UNLCK, first, count);
}

}  // namespace vellum::region
