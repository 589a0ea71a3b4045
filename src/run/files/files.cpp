#include "run/files/files.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "base/files/inode_lock.hpp"
#include "base/files/real_path.hpp"
#include "interfaces/mapped_io/descriptor_io.hpp"
#include "run/files/unseen_uses.hpp"
#include "run/live/live_files.hpp"
#include "run/live/read_views.hpp"
#include "run/process/descriptor_limit.hpp"
#include "run/process/proc.hpp"
#include "run/process/real.hpp"
#include "run/run/watch.hpp"

namespace vellum::preload {
namespace {

bool is_link(const char* path) {
  struct stat status;
  return VELLUM_REAL(lstat)(path, &status) == 0 && S_ISLNK(status.st_mode);
}

// Excludes pipes and similar files, whose paths in proc(5) may match a pattern.
bool is_watched(int fd) noexcept {
  struct stat status;
  return VELLUM_REAL(fstat)(fd, &status) == 0 && S_ISREG(status.st_mode) &&
         WatchedFiles::instance().watches(fd);
}

// Takes no lock: most files are not targets, and Vellum's threads open some while the lock's holder
// waits for them. The target of a link is looked up by its own name.
bool may_be_target(int fd, const char* path) {
  struct stat status;
  if (VELLUM_REAL(fstat)(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (OpenFiles::may_have(status.st_ino)) return true;
  const bool may_be = FileNames::may_be_target(path) || status.st_nlink > 1 || is_link(path);
  if (may_be && WatchedFiles::instance().watches(fd)) return true;
  UnseenUses::note_inode(status.st_ino);
  return false;
}

}  // namespace

// Does not allocate: an allocator may be the first caller.
Files& Files::instance() {
  alignas(Files) static std::byte room[sizeof(Files)];
  static Files* const files = [] {
    static Files* const made = new (room) Files;
    if (made->active()) {
      std::atexit([] { made->close_all(); });
      pthread_atfork(nullptr, nullptr, [] { made->states_.note_process(); });
    }
    return made;
  }();
  return *files;
}

Files::Files()
    : active_(WatchedFiles::instance().active()), states_(active_, [] {
        base::InodeLock::prepare_forks();
        pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork(false); },
                       [] { instance().after_fork(true); });
      }) {}

void Files::before_fork() {
  mapped_io::lock_offsets();  // first: a holder of these waits for the others
  states_.mutex().lock();
  own_descriptors().lock();
  lock_live_files();
  live_ranges().lock();
  read_views().lock();
  own_descriptors().make_pipe();
}

void Files::after_fork(bool child) {
  if (child) {
    states_.note_process();
    states_.forget_kept();
    own_descriptors().close_all();
    const OpenFiles& files = states_.files();
    for (std::size_t i = 0; i < files.end(); ++i)
      if (files.has(i) && files[i].live != nullptr) files[i].live->protect_inherited();
  }
  own_descriptors().await_child(child);
  read_views().unlock();
  live_ranges().unlock();
  unlock_live_files();
  own_descriptors().unlock();
  states_.mutex().unlock();
  mapped_io::unlock_offsets();
}

const std::vector<RunTarget>& Files::targets() {
  states_.load();
  return states_.config().targets;
}

int Files::opened(int fd, const char* path, int flags, bool truncate) {
  if (!may_be_target(fd, path)) return fd;
  states_.load();
  const std::lock_guard lock(states_.mutex());
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  std::size_t number = states_.target_of(fd);
  // A program that only reads gets the kernel's file, which it can map in all ways. What another
  // program has written since the close is adopted, as if the file had been closed then.
  if (number != OpenFiles::kNone && states_.files()[number].kept &&
      (!writes || states_.files()[number].live->is_changed_by_others(fd))) {
    states_.settle();
    number = states_.target_of(fd);
  }
  if (number == OpenFiles::kNone) return UnseenUses::note(fd), fd;
  OpenFile& open = states_.files()[number];
  int error = fd < Descriptors::kMaxDescriptors ? 0 : EMFILE;
  if (error == 0 && writes && open.live == nullptr) error = states_.make_live(open, fd);
  if (error == 0 && truncate) error = open.live->resize(0);
  if (error != 0) {
    states_.close_unused(number);
    VELLUM_REAL(close)(fd);
    errno = error;
    return -1;
  }
  states_.note_descriptor(fd, number, flags);
  shield_standard(fd);
  return fd;
}

std::shared_ptr<LiveFile> Files::live(int fd) {
  const std::size_t number = Descriptors::target(fd);
  if (number == OpenFiles::kNone) return nullptr;
  const std::lock_guard lock(states_.mutex());
  const OpenFiles& files = states_.files();
  return files.has(number) ? files[number].live : nullptr;
}

std::shared_ptr<LiveFile> Files::live(const struct stat& status) {
  if (!OpenFiles::may_have(status.st_ino)) return nullptr;
  const std::lock_guard lock(states_.mutex());
  const OpenFiles& files = states_.files();
  std::size_t number = files.find(status);
  if (number != OpenFiles::kNone && files[number].kept) {
    states_.settle();
    number = files.find(status);
  }
  return number != OpenFiles::kNone ? files[number].live : nullptr;
}

std::shared_ptr<LiveFile> Files::live_with_size(const struct stat& status) {
  if (!OpenFiles::may_have(status.st_ino)) return nullptr;
  const std::lock_guard lock(states_.mutex());
  const std::size_t number = states_.files().find(status);
  if (number == OpenFiles::kNone || states_.files()[number].kept) return nullptr;
  return states_.files()[number].live;
}

void Files::settle() noexcept {
  if (!active() || !states_.any_kept() || shares_memory()) return;
  const std::lock_guard lock(states_.mutex());
  states_.settle();
}

void Files::duplicated(int from, int to) {
  const std::uint32_t facts = Descriptors::facts(from);
  if ((facts & Descriptors::kTarget) == 0 || to < 0 || to >= Descriptors::kMaxDescriptors ||
      shares_memory())
    return;
  const std::lock_guard lock(states_.mutex());
  Descriptors::set(to, facts & ~Descriptors::kReopened);
  ++states_.files()[Descriptors::target(to)].descriptors;
  if (const auto original = original_fds_.find(from);
      (facts & Descriptors::kReopened) != 0 && original != original_fds_.end())
    keep_original(to, original->second);
  shield_standard(to);
}

void Files::closed(int fd) {
  const std::uint32_t facts = Descriptors::facts(fd);
  if ((facts & Descriptors::kTarget) == 0 || shares_memory()) return;
  const std::lock_guard lock(states_.mutex());
  Descriptors::clear(fd);
  const std::size_t number = (facts & Descriptors::kTarget) - 1U;
  --states_.files()[number].descriptors;
  if (const auto original = original_fds_.find(fd);
      (facts & Descriptors::kReopened) != 0 && original != original_fds_.end()) {
    VELLUM_REAL(close)(original->second);
    original_fds_.erase(original);
  }
  states_.close_unused(number);
}

// REQUIRES: FileStates::mutex(). If no descriptor number is free for it, the program's lock belongs
// to the new open file.
void Files::keep_original(int fd, int original) {
  const int kept = VELLUM_REAL(fcntl)(original, F_DUPFD_CLOEXEC, 0);
  const int own = moved_to_high_number(kept);
  if (own < 0) return;
  original_fds_[fd] = own;
  Descriptors::add(fd, Descriptors::kReopened);
}

int Files::original_of(int fd) {
  if ((Descriptors::facts(fd) & Descriptors::kReopened) == 0) return -1;
  const std::lock_guard lock(states_.mutex());
  const auto original = original_fds_.find(fd);
  struct stat now, then;
  // The program may have closed all high descriptors.
  return original != original_fds_.end() && VELLUM_REAL(fstat)(fd, &now) == 0 &&
                 VELLUM_REAL(fstat)(original->second, &then) == 0 && now.st_ino == then.st_ino &&
                 now.st_dev == then.st_dev
             ? original->second
             : -1;
}

bool Files::note_if_target(int fd) {
  const int flags = VELLUM_REAL(fcntl)(fd, F_GETFL);
  struct stat status;
  if (fd >= Descriptors::kMaxDescriptors || Descriptors::facts(fd) != 0 || flags < 0 ||
      (flags & O_PATH) != 0 || VELLUM_REAL(fstat)(fd, &status) != 0 || !S_ISREG(status.st_mode))
    return false;
  const std::size_t number = states_.target_of(fd);
  if (number == OpenFiles::kNone) return false;
  states_.note_descriptor(fd, number, flags);
  return true;
}

void Files::make_live_or_read_only(int fd) {
  OpenFile& open = states_.files()[Descriptors::target(fd)];
  if (!Descriptors::writes(fd) || (open.live != nullptr && fd > STDERR_FILENO)) return;
  if (fd <= STDERR_FILENO || states_.make_live(open, fd, true) != 0) let_read_only(fd);
}

// All are recorded before the first becomes live, because that searches for unknown ones.
void Files::adopt_descriptors() {
  if (WatchedFiles::instance().has_copies() || !any_descriptor(is_watched)) return;
  states_.load();
  const std::lock_guard lock(states_.mutex());
  std::vector<int> ours;
  for (const int fd : descriptors_of_process())
    if (note_if_target(fd)) ours.push_back(fd);
  for (const int fd : ours) make_live_or_read_only(fd);
}

void Files::adopt_descriptor(int fd) {
  if (WatchedFiles::instance().has_copies()) return;
  if (!is_watched(fd)) return UnseenUses::note(fd);
  states_.load();
  const std::lock_guard lock(states_.mutex());
  if (note_if_target(fd)) return make_live_or_read_only(fd);
  UnseenUses::note(fd);
}

void Files::let_read_only(int fd) {
  keep_original(fd, fd);
  reopen_read_only(fd);
  constexpr std::uint32_t kKept = Descriptors::kTarget | Descriptors::kReopened;
  Descriptors::set(fd, (Descriptors::facts(fd) & kKept) | Descriptors::kReads);
}

void Files::commit_all() noexcept {
  const std::lock_guard lock(states_.mutex());
  states_.commit_all();
}

// At its end, the program's writes are in its files, as usual. Mapped files stay live, because
// other threads may still use them: the next opening finds them in use, as after a crash.
void Files::close_all() noexcept {
  const std::lock_guard lock(states_.mutex());
  states_.commit_written();
  const OpenFiles& files = states_.files();
  for (std::size_t i = 0; i < files.end(); ++i) {
    if (!files.has(i) || !files[i].is_own()) continue;
    files[i].live->commit();
    const ReentrancyGuard inside;
    if (files[i].mappings.empty()) files[i].live.reset();
  }
}

void explain_failed_write(int fd) {
  if (Descriptors::known(fd) && !Descriptors::writes(fd) && errno == EBADF &&
      !ReentrancyGuard::is()) {
    std::fprintf(
        stderr,
        "vellum run: %s: this process may only read it: only one process at a time may write\n",
        base::path_of(fd).c_str());
    errno = EBADF;
  }
}

}  // namespace vellum::preload
