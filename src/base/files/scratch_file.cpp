#include "base/files/scratch_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <system_error>
#include <vellum/error.hpp>

#include "base/error_number.hpp"
#include "base/fail.hpp"
#include "base/size_limit.hpp"

namespace vellum::base {
namespace {

class KeepErrno {
 public:
  KeepErrno() noexcept : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

// NFS and some FUSE file systems have no O_TMPFILE. Removing the name at once is equivalent, except
// for a crash between the two calls.
int open_with_a_name(const std::string& directory) noexcept {
  std::string path = directory + "/vellum-spill-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd >= 0) ::unlink(path.c_str());
  return fd;
}

}  // namespace

ScratchFile::ScratchFile(const std::string& directory) {
  fd_ = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
  if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    fd_ = open_with_a_name(directory);
  }
  if (fd_ >= 0) return;
  const int error = errno;
  Errc code = Errc::io;
  if (error == ENOENT || error == ENOTDIR) code = Errc::not_found;
  if (error == EROFS) code = Errc::read_only;
  if (error == ENOSPC || error == EDQUOT) code = Errc::no_space;
  if (is_shortage(error)) code = Errc::out_of_memory;
  fail(code, "{}: cannot create a file there: {}", directory,
       std::generic_category().message(error));
}

ScratchFile::~ScratchFile() { ::close(fd_); }

int ScratchFile::read(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept {
  const KeepErrno keep;
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset_bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENODATA;
    assert(static_cast<std::size_t>(n) <= out.size());
    out = out.subspan(static_cast<std::size_t>(n));
    offset_bytes += static_cast<std::uint64_t>(n);
  }
  return 0;
}

int ScratchFile::write(std::span<const std::byte> bytes, std::uint64_t offset_bytes) noexcept {
  const KeepErrno keep;
  while (!bytes.empty()) {
    if (!may_write_from(offset_bytes)) return errno;
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset_bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    assert(static_cast<std::size_t>(n) <= bytes.size());
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset_bytes += static_cast<std::uint64_t>(n);
  }
  return 0;
}

void ScratchFile::will_need(std::uint64_t offset_bytes, std::uint64_t length_bytes) const noexcept {
  const KeepErrno keep;
  ::posix_fadvise(fd_, static_cast<off_t>(offset_bytes), static_cast<off_t>(length_bytes),
                  POSIX_FADV_WILLNEED);
}

void ScratchFile::punch(std::uint64_t offset_bytes, std::uint64_t length_bytes) noexcept {
  const KeepErrno keep;
  ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_bytes),
              static_cast<off_t>(length_bytes));
}

std::uint64_t ScratchFile::allocated_bytes() const noexcept {
  const KeepErrno keep;
  struct stat status{};
  if (::fstat(fd_, &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

}  // namespace vellum::base
