#include "base/files/read_only_file.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/round_up.hpp"

namespace vellum::base {
namespace {

constexpr std::uint64_t kPage = 4096;

// Reads memory of this process that may be unreadable. Returns the bytes read, or -1 and errno
// (EFAULT).
ssize_t read_own_memory(void* to, const std::byte* from, std::size_t bytes) noexcept {
  const iovec here{to, bytes};
  const iovec there{const_cast<std::byte*>(from), bytes};
  return ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0);
}

bool can_read_own_memory() noexcept {
  static const bool works = [] {
    const std::uint64_t known = 0x564c4d;
    std::uint64_t found = 0;
    return read_own_memory(&found, reinterpret_cast<const std::byte*>(&known), sizeof found) ==
               sizeof found &&
           found == known;
  }();
  return works;
}

class MappedFile final : public ReadOnlyFile {
 public:
  MappedFile(Fs& fs, const File& file, std::byte* at, std::uint64_t room_bytes)
      : fs_(fs),
        path_(file.path()),
        at_(at),
        room_bytes_(room_bytes),
        last_bytes_(file.size_bytes()),
        last_allocated_bytes_(file.allocated_bytes()),
        identity_(file.identity()) {}
  ~MappedFile() override { ::munmap(at_, room_bytes_); }

  const std::string& path() const noexcept override { return path_; }
  void renamed(const std::string& path) override { path_ = path; }
  // A file without its name is no longer written. Its last size is therefore right.
  std::uint64_t size_bytes() const override {
    const auto now = named();
    return now ? static_cast<std::uint64_t>(now->st_size) : last_bytes_;
  }
  std::uint64_t allocated_bytes() const override {
    const auto now = named();
    return now ? static_cast<std::uint64_t>(now->st_blocks) * 512 : last_allocated_bytes_;
  }
  void pread(std::span<std::byte> out, std::uint64_t offset_bytes) const override;
  int try_pread(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept override;
  bool replaced() const override { return !named().has_value(); }
  FileIdentity identity() const override { return identity_; }

  bool pin_byte(std::uint64_t offset_bytes) override;
  void unpin_byte(std::uint64_t offset_bytes) override;
  std::vector<std::uint64_t> pinned_bytes() const override { return reopen()->pinned_bytes(); }

  bool byte_locked(std::uint64_t offset_bytes) const override {
    return reopen()->byte_locked(offset_bytes);
  }

 private:
  std::optional<struct stat> named() const;
  std::unique_ptr<File> reopen() const;
  int why_missing(std::uint64_t end_bytes) const noexcept;

  Fs& fs_;
  std::string path_;
  std::byte* const at_;
  const std::uint64_t room_bytes_, last_bytes_, last_allocated_bytes_;
  const FileIdentity identity_;
  std::mutex mutex_;            // guards the members below
  std::unique_ptr<File> pins_;  // while a byte is pinned: its locks
  std::uint64_t pinned_ = 0;
};

// The status of the file with this name, if it is still this file.
std::optional<struct stat> MappedFile::named() const {
  struct stat now{};
  if (::lstat(path_.c_str(), &now) != 0) {
    if (errno == ENOENT) return std::nullopt;
    fail(Errc::io, "{}: stat: {}", path_, std::generic_category().message(errno));
  }
  if (now.st_dev != identity_.device || now.st_ino != identity_.inode) return std::nullopt;
  return now;
}

std::unique_ptr<File> MappedFile::reopen() const {
  auto file = fs_.open(path_, OpenMode::read_only);
  const FileIdentity now = file->identity();
  if (now.device == identity_.device && now.inode == identity_.inode) return file;
  fail(Errc::not_found, "{}: another file has the name", path_);
}

// A page fault on the mapping fails past the end of the file and when the medium fails. Both give
// EFAULT. Makes only calls that a fault handler may make.
int MappedFile::why_missing(std::uint64_t end_bytes) const noexcept {
  struct stat now{};
  const bool same = ::lstat(path_.c_str(), &now) == 0 && now.st_dev == identity_.device &&
                    now.st_ino == identity_.inode;
  const std::uint64_t size = same ? static_cast<std::uint64_t>(now.st_size) : last_bytes_;
  return end_bytes > size ? ENODATA : EIO;
}

// The kernel reads one page per fault here (MADV_RANDOM). MADV_WILLNEED therefore announces all
// pages first.
int MappedFile::try_pread(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept {
  if (out.size() > room_bytes_ || offset_bytes > room_bytes_ - out.size()) return ENODATA;
  const std::uint64_t end = offset_bytes + out.size();
  const int saved_errno = errno;
  const std::uint64_t first = offset_bytes / kPage * kPage;
  ::madvise(at_ + first, end - first, MADV_WILLNEED);
  int result = 0;
  while (!out.empty() && result == 0) {
    assert(out.size() <= end);
    const ssize_t got = read_own_memory(out.data(), at_ + (end - out.size()), out.size());
    if (got > 0) {
      out = out.subspan(static_cast<std::size_t>(got));
    } else {
      result = got == 0 || errno == EFAULT ? why_missing(end) : errno;
    }
  }
  errno = saved_errno;
  return result;
}

void MappedFile::pread(std::span<std::byte> out, std::uint64_t offset_bytes) const {
  const int error = try_pread(out, offset_bytes);
  if (error == 0) return;
  const std::string what = path_ + ": read of " + std::to_string(out.size()) + " bytes at offset " +
                           std::to_string(offset_bytes);
  if (error == ENODATA) fail(Errc::corrupted, "{}: truncated", what);
  fail(Errc::io, "{}: {}", what, std::generic_category().message(error));
}

bool MappedFile::pin_byte(std::uint64_t offset_bytes) {
  const std::lock_guard guard(mutex_);
  if (pins_ == nullptr) pins_ = reopen();
  const bool pinned = pins_->pin_byte(offset_bytes);
  if (pinned) ++pinned_;
  if (pinned_ == 0) pins_.reset();
  return pinned;
}

void MappedFile::unpin_byte(std::uint64_t offset_bytes) {
  const std::lock_guard guard(mutex_);
  if (pins_ == nullptr) return;
  assert(pinned_ > 0);
  if (--pinned_ == 0) {
    pins_.reset();  // releases the pins
  } else {
    pins_->unpin_byte(offset_bytes);
  }
}

}  // namespace

std::unique_ptr<File> hold_by_mapping(Fs& fs, std::unique_ptr<File> file,
                                      std::uint64_t room_bytes) {
  const int fd = file->descriptor();
  if (fd < 0 || room_bytes == 0 || room_bytes > SIZE_MAX / 2 || !can_read_own_memory()) return file;
  const std::uint64_t room = round_up(room_bytes, kPage);
  void* at = ::mmap(nullptr, room, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (at == MAP_FAILED) return file;
  ::madvise(at, room, MADV_RANDOM);
  return std::make_unique<MappedFile>(fs, *file, static_cast<std::byte*>(at), room);
}

std::size_t descriptor_share() noexcept {
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 16;
  return static_cast<std::size_t>(std::clamp<rlim_t>(limit.rlim_cur / 8, 16, 512));
}

}  // namespace vellum::base
