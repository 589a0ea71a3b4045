#include "interfaces/lmdb/copy.hpp"

#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/threads/start_thread.hpp"

namespace vellum::lmdb {
namespace {

constexpr int kPipeBytes = 1 << 20;

Errc code_of(int error) {
  switch (error) {
    case MDB_VERSION_MISMATCH:
    case MDB_INVALID:
      return Errc::unsupported;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
      return Errc::corrupted;
    case MDB_READERS_FULL:
      return Errc::busy;
    default:
      return error == ENOMEM ? Errc::out_of_memory : Errc::io;
  }
}

}  // namespace

void Copy::CloseEnv::operator()(MDB_env* env) const { mdb_env_close(env); }

void Copy::require(int error) const {
  if (error == 0) return;
  fail(code_of(error),
       "{}: LMDB {}.{}.{}: {}; stop the writer, and take the file as it is with --stopped", path_,
       MDB_VERSION_MAJOR, MDB_VERSION_MINOR, MDB_VERSION_PATCH, mdb_strerror(error));
}

Copy::Copy(const std::string& path, const std::string& lock_file) : path_(path) {
  MDB_env* env = nullptr;
  require(mdb_env_create(&env));
  env_.reset(env);
  const std::filesystem::path lock(lock_file);
  const bool of_directory = lock.filename() == "lock.mdb";
  const unsigned flags = MDB_RDONLY | (of_directory ? 0u : unsigned{MDB_NOSUBDIR}) |
                         (lock.empty() ? unsigned{MDB_NOLOCK} : 0u);
  std::string where = path;
  if (of_directory)
    where = lock.parent_path().string();
  else if (!lock.empty())
    where = lock_file.substr(0, lock_file.size() - std::strlen("-lock"));
  require(mdb_env_open(env, where.c_str(), flags, 0));
  MDB_envinfo info;
  MDB_stat stat;
  require(mdb_env_info(env, &info));
  require(mdb_env_stat(env, &stat));
  first_transaction_ = info.me_last_txnid;
  expected_bytes_ = (std::uint64_t{info.me_last_pgno} + 1) * stat.ms_psize;
}

Copy::~Copy() {
  if (from_copy_ >= 0) ::close(from_copy_);  // ends a copy in progress
  if (copier_.joinable()) copier_.join();
}

bool Copy::of_last_transaction() const {
  MDB_envinfo info;
  require(mdb_env_info(env_.get(), &info));
  return info.me_last_txnid == first_transaction_;
}

std::size_t Copy::read(void* to, std::size_t capacity_bytes) {
  if (from_copy_ < 0) start();
  auto* const begin = static_cast<std::byte*>(to);
  std::size_t got = 0;
  while (got < capacity_bytes) {
    const ssize_t n = ::read(from_copy_, begin + got, capacity_bytes - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(Errc::io, "{}: {}", path_, std::strerror(errno));
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  if (got == capacity_bytes) return got;
  if (copier_.joinable()) copier_.join();
  require(copied_);
  return got;
}

void Copy::start() {
  assert(from_copy_ < 0 && !copier_.joinable());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(Errc::io, "{}: no pipe: {}", path_, std::strerror(errno));
  ::fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);  // faster, where permitted
  from_copy_ = ends[0];
  try {
    copier_ =
        base::start_thread("copies the environment", [this, to = ends[1]] { write_copy(to); });
  } catch (const Error&) {
    ::close(ends[1]);
    throw;
  }
}

// Runs in its own thread, because LMDB writes to a descriptor and returns only at the end.
void Copy::write_copy(int fd) noexcept {
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  copied_ = mdb_env_copyfd(env_.get(), fd);
  // Nothing has been copied yet. Killed readers may still occupy slots of the reader table.
  int freed = 0;
  if (copied_ == MDB_READERS_FULL && mdb_reader_check(env_.get(), &freed) == 0 && freed > 0)
    copied_ = mdb_env_copyfd(env_.get(), fd);
  // A writer has enlarged the environment since this process opened it; nothing has been copied
  // yet.
  while (copied_ == MDB_MAP_RESIZED && mdb_env_set_mapsize(env_.get(), 0) == 0)
    copied_ = mdb_env_copyfd(env_.get(), fd);
  ::close(fd);
}

}  // namespace vellum::lmdb
