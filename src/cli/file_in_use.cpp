#include "cli/file_in_use.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <vellum/error.hpp>

#include "atomic_file/journal_file.hpp"
#include "base/lmdb_format.hpp"

namespace vellum::cli {
namespace {

namespace fs = std::filesystem;

bool begins_as_lmdb_lock(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  const auto file = base::posix_fs().open(path, base::OpenMode::read_only);
  std::uint32_t magic = 0;
  return file->try_pread(std::as_writable_bytes(std::span(&magic, 1)), 0) == 0 &&
         magic == base::lmdb::kMagic;
}

}  // namespace

bool is_open_elsewhere(const base::File& file, Use use) {
  // A process that opens the file during the lease waits, and this process gets a signal.
  std::signal(SIGIO, SIG_IGN);
  const int lease = use == Use::writing ? F_RDLCK : F_WRLCK;
  if (::fcntl(file.descriptor(), F_SETLEASE, lease) != 0) return errno == EAGAIN;
  ::fcntl(file.descriptor(), F_SETLEASE, F_UNLCK);
  return false;
}

void require_no_journal(const std::string& path) {
  const std::string journal = atomic_file::journal_path(path);
  if (!base::posix_fs().exists(journal)) return;
  throw Error(
      Errc::busy,
      fmt::format(
          "{}: a program is at work on {}, or has crashed; after a crash, run vellum recover {}",
          journal, path, path));
}

std::string lmdb_lock_file(const std::string& path) {
  const fs::path file(path);
  std::string of_directory = (file.parent_path() / "lock.mdb").string();
  if (file.filename() == "data.mdb" && begins_as_lmdb_lock(of_directory)) return of_directory;
  return begins_as_lmdb_lock(path + "-lock") ? path + "-lock" : "";
}

// A lock of the process, not of the open file description: LMDB uses the former.
LmdbLock::LmdbLock(const std::string& lock_file)
    : fd_(::open(lock_file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)) {
  if (fd_ < 0) throw Error(Errc::io, fmt::format("{}: {}", lock_file, std::strerror(errno)));
  struct flock first_byte{};
  first_byte.l_type = F_WRLCK;
  first_byte.l_whence = SEEK_SET;
  first_byte.l_len = 1;
  held_ = ::fcntl(fd_, F_SETLK, &first_byte) == 0;
}

LmdbLock::~LmdbLock() { ::close(fd_); }

}  // namespace vellum::cli
