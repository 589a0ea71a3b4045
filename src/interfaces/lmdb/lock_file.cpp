#include "interfaces/lmdb/lock_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "interfaces/lmdb/meta.hpp"

namespace vellum::lmdb {
namespace {

namespace fs = std::filesystem;

bool begins_as_lock(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  const auto file = base::posix_fs().open(path, base::OpenMode::read_only);
  std::uint32_t magic = 0;
  return file->try_pread(std::as_writable_bytes(std::span(&magic, 1)), 0) == 0 && magic == kMagic;
}

}  // namespace

std::string lock_file_of(const std::string& path) {
  const fs::path file(path);
  std::string of_directory = (file.parent_path() / "lock.mdb").string();
  if (file.filename() == "data.mdb" && begins_as_lock(of_directory)) return of_directory;
  return begins_as_lock(path + "-lock") ? path + "-lock" : "";
}

// A lock of the process, not of the open file description: LMDB uses the former.
Lock::Lock(const std::string& lock_file)
    : fd_(::open(lock_file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)) {
  if (fd_ < 0) fail(Errc::io, "{}: {}", lock_file, std::strerror(errno));
  struct flock first_byte{};
  first_byte.l_type = F_WRLCK;
  first_byte.l_whence = SEEK_SET;
  first_byte.l_len = 1;
  held_ = ::fcntl(fd_, F_SETLK, &first_byte) == 0;
}

Lock::~Lock() { ::close(fd_); }

}  // namespace vellum::lmdb
