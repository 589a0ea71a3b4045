#include "run/files/file_states.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/error_number.hpp"
#include "base/files/real_path.hpp"
#include "base/threads/fork_count.hpp"
#include "interfaces/mapped_io/durable.hpp"
#include "run/files/unseen_uses.hpp"
#include "run/live/live_files.hpp"
#include "run/process/descriptor_limit.hpp"
#include "run/process/proc.hpp"
#include "run/process/real.hpp"
#include "run/run/run_record.hpp"
#include "run/run/watch.hpp"

namespace vellum::preload {
namespace {

bool has_name(const struct stat& file, const std::string& path) {
  struct stat named;
  return VELLUM_REAL(lstat)(path.c_str(), &named) == 0 && named.st_ino == file.st_ino &&
         named.st_dev == file.st_dev;
}

// Detects the library that valgrind preloads into every program.
bool under_valgrind() noexcept {
  const char* const preload = std::getenv("LD_PRELOAD");
  return preload != nullptr && std::strstr(preload, "/vgpreload_") != nullptr;
}

// Replaces the descriptor's open file by another one of the same file. `instead_of_none`: the path
// to open if that fails; null: nothing changes.
void reopen(int fd, int flags, const char* instead_of_none) {
  const off_t at = VELLUM_REAL(lseek)(fd, 0, SEEK_CUR);
  const int append = VELLUM_REAL(fcntl)(fd, F_GETFL) & O_APPEND;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  int instead = VELLUM_REAL(open)(link.c_str(), flags | append);
  if (instead < 0 && instead_of_none != nullptr)
    instead = VELLUM_REAL(open)(instead_of_none, flags);
  if (instead < 0) return;
  VELLUM_REAL(dup2)(instead, fd);
  VELLUM_REAL(close)(instead);
  VELLUM_REAL(lseek)(fd, at, SEEK_SET);
}

}  // namespace

void reopen_read_only(int fd) { reopen(fd, O_RDONLY | O_CLOEXEC, "/dev/null"); }

void shield_standard(int fd) {
  if (fd <= STDERR_FILENO && Descriptors::known(fd) && Descriptors::writes(fd))
    reopen_read_only(fd);
}

FileStates::FileStates(bool active, void (*register_fork_handlers)())
    : active_(active),
      register_fork_handlers_(register_fork_handlers),
      process_(process_identity()) {}

void FileStates::load() {
  static const bool loaded = [this] {
    const ReentrancyGuard inside;
    config_ = Config::from(WatchedFiles::instance());
    UnseenUses::note_all();
    base::fork_count();
    register_fork_handlers_();
    return true;
  }();
  (void)loaded;
}

bool FileStates::shares_memory() const noexcept { return process_identity() != process_; }

void FileStates::note_process() noexcept { process_ = process_identity(); }

bool FileStates::watches_names() const noexcept {
  return active_ && !ReentrancyGuard::is() && !shares_memory() &&
         !WatchedFiles::instance().has_copies();
}

// A file that has lost its name, by whatever means, is no longer a target.
std::size_t FileStates::target_of(int fd) {
  struct stat status;
  if (VELLUM_REAL(fstat)(fd, &status) != 0) return OpenFiles::kNone;
  std::size_t known = files_.find(status);
  if (known != OpenFiles::kNone && is_parents_kept(files_[known])) {
    remove(known);
    known = OpenFiles::kNone;
  }
  if (known != OpenFiles::kNone && (has_name(status, files_[known].target.path) || !release(known)))
    return known;
  const std::string path = base::path_of(fd);
  const std::string branch = config_.branch_for(path);
  return branch.empty() || !has_name(status, path) ? OpenFiles::kNone : add(status, path, branch);
}

std::size_t FileStates::add(const struct stat& status, const std::string& path,
                            const std::string& branch) {
  release_kept(branch);
  note_opened(config_.target_for(path));
  return files_.add(status, {path, branch, {}});
}

void FileStates::note_descriptor(int fd, std::size_t number, int flags) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY, reads = (flags & O_ACCMODE) != O_WRONLY;
  const bool synchronous = mapped_io::descriptor_is_synchronous(flags);
  Descriptors::set(
      fd, static_cast<std::uint32_t>(number + 1) | (synchronous ? Descriptors::kSynchronous : 0U) |
              (writes ? Descriptors::kWrites : 0U) | (reads ? Descriptors::kReads : 0U) |
              ((flags & O_APPEND) != 0 ? Descriptors::kMayAppend : 0U));
  ++files_[number].descriptors;
  note_used(files_[number]);
}

int FileStates::make_live(OpenFile& open, int fd, bool quiet) {
  if (under_valgrind())
    return complain(open.target.path, ENOTSUP,
                    "cannot be written under valgrind, which lacks system calls that the library "
                    "needs: run valgrind without vellum run");
  if (const int error = UnseenUses::refuse(open, fd)) return error;
  const auto body = [&] {
    open.live = open_live(config_, open.target);
    files_.note_live(*open.live);
  };
  const ReentrancyGuard inside;
  int error =
      quiet ? base::error_of(body, [](const char*) {}) : cause_of(reported(open.target.path, body));
  if (error == 0) error = UnseenUses::keep_views(open);
  if (error == 0) return 0;
  if (open.live != nullptr) files_.forget_live(open);
  if (const std::string limit = limit_behind(error); !quiet && !limit.empty())
    complain(open.target.path, error, limit.c_str());
  return error;
}

// If the commit fails, the file stays live, and the commit is retried at the end of the process.
void FileStates::close_unused(std::size_t number) {
  OpenFile& open = files_[number];
  if (open.descriptors != 0 || !open.mappings.empty()) return;
  if (open.is_own()) {
    const LiveFiles others = files_.written_among_others(*open.live);
    if (keep(open, others)) return;
    if (commit_among(others, *open.live, &LiveFile::commit) != 0) return;
  }
  if (open.live == nullptr && open.to_be_found) commit_as_found(open);
  remove(number);
  close_kept();
}

bool FileStates::release(std::size_t number) {
  OpenFile& open = files_[number];
  if (open.live != nullptr && open.live->inherited()) return false;
  if (open.live != nullptr &&
      open.live->leave(own_descriptors_.reopened(open.file), open.mappings) != 0)
    return false;
  for (unsigned at = Descriptors::next(0); at != UINT_MAX; at = Descriptors::next(at + 1)) {
    const int fd = static_cast<int>(at);
    if (Descriptors::target(fd) != number) continue;
    const bool writes = Descriptors::writes(fd), reads = Descriptors::reads(fd);
    Descriptors::clear(fd);
    // A standard stream was reopened read-only; the kernel handles write(2) again.
    if (fd <= STDERR_FILENO && writes) reopen(fd, reads ? O_RDWR : O_WRONLY, nullptr);
  }
  UnseenUses::note_inode(open.file.inode);
  remove(number);
  return true;
}

void FileStates::commit_as_found(const OpenFile& open) {
  reported(open.target.path, [&] { open_live(config_, open.target); });
}

int FileStates::commit_among(const LiveFiles& written, LiveFile& file, Commit how) {
  int error = 0;
  bool done = false;
  for (const auto& other : written) {
    if (other.get() != &file) {
      other->commit();
    } else {
      error = (file.*how)();
      done = true;
    }
  }
  return done ? error : (file.*how)();
}

int FileStates::commit_in_order(LiveFile& file, Commit how) {
  LiveFiles written;
  {
    const std::lock_guard lock(mutex_);
    written = files_.written_among_others(file);
  }
  const int error = commit_among(written, file, how);
  // Whoever has the lock may wait for the last user of one of these files (open_live()): then the
  // kept files are closed later.
  if (!any_kept()) return error;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) close_kept();
  return error;
}

void FileStates::commit_written() {
  if (LiveFile::written_count() != 0)
    for (const auto& live : files_.written()) live->commit();
  close_kept();
}

void FileStates::commit_all() {
  commit_written();
  for (std::size_t i = 0; i < files_.end(); ++i)
    if (files_.has(i) && files_[i].is_own()) files_[i].live->commit();
}

}  // namespace vellum::preload
