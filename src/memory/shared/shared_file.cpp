#include "memory/shared/shared_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>
#include <vellum/version.hpp>

#include "base/bytes/checksum.hpp"
#include "base/bytes/hex.hpp"
#include "base/files/read_only_file.hpp"
#include "base/memory/process_memory.hpp"
#include "base/round_up.hpp"
#include "base/size_limit.hpp"
#include "format/journal.hpp"
#include "memory/shared/shared_directory.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/page_map/resolved_version.hpp"

namespace vellum::region {
namespace {

constexpr std::size_t kHeaderBytes = kSharedHeaderBytes;
constexpr std::size_t kWordBytes = 8;
constexpr int kLayout = 1;
constexpr std::size_t kMaxChunks = 2u << 20;  // their words take 16 MiB
constexpr int kTries = 200;  // while other processes open, create and remove the file
constexpr useconds_t kPauseUs = 1000;

std::atomic<std::size_t> kept_files_open{0};  // by this process

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

std::string header_of(const SharedLayout& layout) {
  const std::uint16_t one = 1;
  unsigned char low_first = 0;
  std::memcpy(&low_first, &one, 1);
  std::string header =
      fmt::format("{}layout {}, library {}, {}-endian, {} bytes in chunks of {}, {}\n",
                  kSharedHeaderStart, kLayout, version(), low_first == 1 ? "little" : "big",
                  layout.content_bytes, layout.chunk_bytes, layout.version);
  header.resize(kHeaderBytes);
  return header;
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

SharedFile::SharedFile(const SharedLayout& layout, int directory, std::uint64_t kept_limit_bytes)
    : layout_(layout),
      name_(layout.name()),
      directory_(directory),
      kept_limit_bytes_(kept_limit_bytes) {}

std::unique_ptr<SharedFile> SharedFile::open(const SharedLayout& layout) {
  return open_in(layout, open_share_directory(), 0);
}

// Programs that have not asked for it must not fail for want of descriptors or address space: the
// file is mapped twice, beside the range of the region and its room.
std::unique_ptr<SharedFile> SharedFile::open_kept(const SharedLayout& layout,
                                                  std::uint64_t limit_bytes) {
  if (kept_files_open.load() >= base::descriptor_share() / 4 ||
      base::space_left() / 4 < layout.file_bytes()) {
    return nullptr;
  }
  auto file = open_in(layout, open_kept_directory(), limit_bytes);
  if (file) {
    ::close(std::exchange(file->directory_, -1));
    ++kept_files_open;
  }
  return file;
}

std::unique_ptr<SharedFile> SharedFile::open_in(const SharedLayout& layout, int directory,
                                                std::uint64_t kept_limit_bytes) {
  if (directory < 0) return nullptr;
  std::unique_ptr<SharedFile> file(new SharedFile(layout, directory, kept_limit_bytes));
  if (layout.version.empty() || layout.chunks() > kMaxChunks) return nullptr;
  if (file->is_kept()) {
    drop_kept_if_short_of_memory(directory);
  } else {
    remove_leftovers(directory);
  }
  return file->open_or_create() ? std::move(file) : nullptr;
}

bool SharedFile::open_or_create() {
  for (int tries = 0; tries < kTries; ++tries) {
    OpenedFile found = open_existing();
    // A kept file may be one of another library's version, which nobody removes.
    if (found == OpenedFile::refused && is_kept()) {
      remove_unread(directory_, name_.c_str());
      found = open_existing();
    }
    if (found == OpenedFile::removed) found = is_kept() ? create_kept() : create();
    if (found != OpenedFile::removed) return found == OpenedFile::usable;
    ::usleep(kPauseUs);
  }
  return false;
}

SharedFile::OpenedFile SharedFile::create_kept() {
  KeptFilesLock one_at_a_time(directory_);
  if (const OpenedFile found = open_existing(); found != OpenedFile::removed) return found;
  if (!one_at_a_time.make_room(layout_.file_bytes(), kept_limit_bytes_)) return OpenedFile::refused;
  return create();
}

SharedFile::OpenedFile SharedFile::open_existing() {
  file_ = open_in_share_directory(directory_, name_.c_str());
  if (file_ < 0) return errno == ENOENT ? OpenedFile::removed : OpenedFile::refused;
  forked_.keep_from_children(file_);
  // A reader that closes the file, or a process that removes leftovers, locks all of it briefly.
  const OpenedFile found =
      set_shared_lock(file_, F_RDLCK, readers_byte(), 1) ? check() : OpenedFile::removed;
  if (found != OpenedFile::usable) {
    close_file();
  } else if (is_kept()) {
    ::futimens(file_, nullptr);  // the order in which files are removed
  }
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
      set_shared_lock(file_, F_RDLCK, readers_byte(), 1);
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
  if (::fstat(file_, &status) != 0 || !is_own_shared_file(status)) return OpenedFile::refused;
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
  if (file_ >= 0 && is_kept()) {
    close_file();
    if (directory_ < 0) --kept_files_open;
  }
  if (file_ >= 0) {
    set_shared_lock(file_, F_UNLCK, 0, 0);
    struct stat status{};
    if (set_shared_lock(file_, F_WRLCK, 0, 0) && ::fstat(file_, &status) == 0 &&
        status.st_nlink == 1)
      ::unlinkat(directory_, name_.c_str(), 0);
    close_file();
  }
  if (directory_ >= 0) ::close(directory_);
}

void SharedFile::close_file() noexcept {
  forked_.forget();
  ::close(std::exchange(file_, -1));
}

bool SharedFile::try_lock(std::uint64_t first, std::uint64_t count) noexcept {
  return set_shared_lock(file_, F_WRLCK, first, count);
}

void SharedFile::unlock(std::uint64_t first, std::uint64_t count) noexcept {
  set_shared_lock(file_, F_UNLCK, first, count);
}

}  // namespace vellum::region
