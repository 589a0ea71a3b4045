#include "run/files/files.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error_number.hpp"
#include "base/files/real_path.hpp"
#include "base/threads/fork_count.hpp"
#include "interfaces/mapped_io/durable.hpp"
#include "run/live/live_files.hpp"
#include "run/process/descriptor_limit.hpp"
#include "run/process/proc.hpp"
#include "run/process/real.hpp"
#include "run/run/run_record.hpp"
#include "run/run/watch.hpp"

namespace vellum::preload {
namespace {

using base::path_of;

bool has_name(const struct stat& file, const std::string& path) {
  struct stat named;
  return VELLUM_REAL(lstat)(path.c_str(), &named) == 0 && named.st_ino == file.st_ino &&
         named.st_dev == file.st_dev;
}

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

// Detects the library that valgrind preloads into every program.
bool under_valgrind() noexcept {
  const char* const preload = std::getenv("LD_PRELOAD");
  return preload != nullptr && std::strstr(preload, "/vgpreload_") != nullptr;
}

// Makes the kernel refuse writes to this descriptor.
void reopen_read_only(int fd) {
  const off_t at = VELLUM_REAL(lseek)(fd, 0, SEEK_CUR);
  const int append = VELLUM_REAL(fcntl)(fd, F_GETFL) & O_APPEND;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  int instead = VELLUM_REAL(open)(link.c_str(), O_RDONLY | O_CLOEXEC | append);
  if (instead < 0) instead = VELLUM_REAL(open)("/dev/null", O_RDONLY | O_CLOEXEC);
  VELLUM_REAL(dup2)(instead, fd);
  VELLUM_REAL(close)(instead);
  VELLUM_REAL(lseek)(fd, at, SEEK_SET);
}

}  // namespace

std::array<std::atomic<std::uint32_t>, Files::kMaxDescriptors> Files::entries_;
std::atomic<unsigned> Files::entries_end_{0};
CountedInodeSet Files::inodes_;
InodeSet Files::used_;

int complain(const std::string& path, int error, const char* what) {
  std::fprintf(stderr, "vellum run: %s: %s\n", path.c_str(), what);
  return error;
}

// Does not allocate: an allocator may be the first caller.
Files& Files::instance() {
  alignas(Files) static std::byte room[sizeof(Files)];
  static Files* const files = [] {
    static Files* const made = new (room) Files;
    if (made->active()) {
      std::atexit([] { made->close_all(); });
      pthread_atfork(nullptr, nullptr, [] { made->process_ = process_identity(); });
    }
    return made;
  }();
  return *files;
}

Files::Files() : active_(WatchedFiles::instance().active()), process_(process_identity()) {}

// REQUIRES: a watched file is about to be opened: from now on allocation is allowed. The program's
// allocator has already registered for fork(2), so its locks are taken after these.
void Files::load() {
  static const bool loaded = [this] {
    const ReentrancyGuard inside;
    loaded_ = Config::from(WatchedFiles::instance());
    note_used_before();
    base::fork_count();
    pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork(false); },
                   [] { instance().after_fork(true); });
    return true;
  }();
  (void)loaded;
}

std::size_t Files::find(const struct stat& status) const {
  const auto found = numbers_.find({status.st_dev, status.st_ino});
  return found != numbers_.end() ? found->second : kTarget;
}

// A file that has lost its name, by whatever means, is no longer a target.
std::size_t Files::target_of(int fd) {
  struct stat status;
  if (VELLUM_REAL(fstat)(fd, &status) != 0) return kTarget;
  const std::size_t known = find(status);
  if (known != kTarget && (has_name(status, opens_[known]->target.path) || !release(known)))
    return known;
  const std::string path = path_of(fd);
  const std::string branch = config_.branch_for(path);
  return branch.empty() || !has_name(status, path) ? kTarget : add(status, path, branch);
}

std::size_t Files::add(const struct stat& status, std::string path, std::string branch) {
  auto open = std::make_unique<Open>();
  note_opened(config_.target_for(path));
  open->target = {std::move(path), std::move(branch), {}};
  open->file = {status.st_dev, status.st_ino};
  if (free_.empty() && opens_.size() == kTarget) return kTarget;
  if (free_.empty()) {
    free_.push_back(opens_.size());
    opens_.emplace_back();
  }
  const std::size_t number = free_.back();
  numbers_.emplace(open->file, number);
  free_.pop_back();
  inodes_.add(status.st_ino);
  opens_[number] = std::move(open);
  return number;
}

// REQUIRES: mutex_, and no descriptor has its number.
void Files::forget(std::size_t number) {
  const ReentrancyGuard inside;
  Open& open = *opens_[number];
  free_.push_back(number);
  numbers_.erase(open.file);
  inodes_.remove(open.file.inode);
  if (open.live != nullptr) forget_live(open);
  opens_[number].reset();
}

void Files::forget_live(Open& open) {
  if (--live_ == 0) lowest_ = UINTPTR_MAX, highest_ = 0;
  open.live.reset();
}

void Files::note_live(const LiveFile& live) {
  const auto data = reinterpret_cast<std::uintptr_t>(live.data());
  ++live_;
  lowest_ = std::min<std::uintptr_t>(lowest_, data);
  highest_ = std::max<std::uintptr_t>(highest_, data + live.capacity_bytes());
}

void Files::note_used(int fd) noexcept {
  struct stat status;
  if (active() && VELLUM_REAL(fstat)(fd, &status) == 0 && S_ISREG(status.st_mode))
    used_.add(status.st_ino);
}

// Records the files that the program was started with, or had open or mapped before load().
void Files::note_used_before() {
  for (const int fd : descriptors_of_process()) note_used(fd);
  for_mappings([](const KernelMapping& mapping) { used_.add(mapping.inode); });
}

bool Files::names_target(int directory, const char* path) const {
  const int fd = VELLUM_REAL(openat)(directory, path, O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ours = WatchedFiles::instance().watches(fd);
  VELLUM_REAL(close)(fd);
  return ours;
}

// Tests only the last part of the path. The target of a link is tested only in may_be_target().
bool Files::may_name_target(const char* path) const { return WatchedFiles::instance().may_name(path); }

// Takes no lock: most files are not targets, and Vellum's threads open some while the lock's holder
// waits for them. The target of a link is looked up by its own name.
bool Files::may_be_target(int fd, const char* path) const {
  struct stat status;
  if (VELLUM_REAL(fstat)(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (inodes_.may_have(status.st_ino)) return true;
  const bool may_be = may_name_target(path) || status.st_nlink > 1 || is_link(path);
  if (may_be && WatchedFiles::instance().watches(fd)) return true;
  used_.add(status.st_ino);
  return false;
}

int Files::opened(int fd, const char* path, int flags, bool truncate) {
  if (!may_be_target(fd, path)) return fd;
  load();
  const std::lock_guard lock(mutex_);
  const std::size_t number = target_of(fd);
  if (number == kTarget) return note_used(fd), fd;
  Open& open = *opens_[number];
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  int error = fd < kMaxDescriptors ? 0 : EMFILE;
  if (error == 0 && writes && open.live == nullptr) error = make_live(open, fd);
  if (error == 0 && truncate) error = open.live->resize(0);
  if (error != 0) {
    close_unused(number);
    VELLUM_REAL(close)(fd);
    errno = error;
    return -1;
  }
  note_descriptor(fd, number, flags);
  shield_standard(fd);
  return fd;
}

void Files::note_descriptor(int fd, std::size_t number, int flags) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY, reads = (flags & O_ACCMODE) != O_WRONLY;
  const bool synchronous = mapped_io::descriptor_is_synchronous(flags);
  set_entry(fd, static_cast<std::uint32_t>(number + 1) | (synchronous ? kSynchronous : 0U) |
                    (writes ? kWrites : 0U) | (reads ? kReads : 0U) |
                    ((flags & O_APPEND) != 0 ? kMayAppend : 0U));
  ++opens_[number]->descriptors;
}

// Refuses a file that is in use without this library, bypassing the live file's memory: through a
// writable mapping, or a descriptor that was inherited or opened under another name.
int Files::refuse_unseen(const Open& open, int fd) const {
  if (!used_.may_have(open.file.inode)) return 0;
  const auto mappings = kernel_mappings(open.file.inode, open.target.path);
  if (!std::all_of(mappings.begin(), mappings.end(),
                   [](const KernelMapping& mapping) { return mapping.shared_to_read; }))
    return complain(open.target.path, EBUSY,
                    "this process has mapped it for writing, or privately: unmap it before you "
                    "open it for writing");
  for (const int other : descriptors_of_process()) {
    struct stat status;
    if (other == fd || entry_of(other) != 0 || !writes_a_file(other)) continue;
    if (VELLUM_REAL(fstat)(other, &status) == 0 && status.st_ino == open.file.inode &&
        status.st_dev == open.file.device)
      return complain(open.target.path, EBUSY,
                      "this process has had it open for writing since before it had this name");
  }
  return 0;
}

int Files::make_live(Open& open, int fd, bool quiet) {
  if (under_valgrind())
    return complain(open.target.path, ENOTSUP,
                    "cannot be written under valgrind, which lacks system calls that the library "
                    "needs: run valgrind without vellum run");
  if (const int error = refuse_unseen(open, fd)) return error;
  const auto body = [&] {
    open.live = open_live(config_, open.target);
    note_live(*open.live);
  };
  const ReentrancyGuard inside;
  int error =
      quiet ? base::error_of(body, [](const char*) {}) : cause_of(reported(open.target.path, body));
  if (error == 0) error = keep_views(open);
  if (error == 0) return 0;
  if (open.live != nullptr) forget_live(open);
  if (const std::string limit = limit_behind(error); !quiet && !limit.empty())
    complain(open.target.path, error, limit.c_str());
  return error;
}

// REQUIRES: mutex_, as below.
Files::LiveFiles Files::written_files() const {
  std::vector<std::pair<std::uint64_t, std::shared_ptr<LiveFile>>> found;
  for (const auto& open : opens_) {
    if (open == nullptr || open->live == nullptr || open->live->inherited()) continue;
    const std::uint64_t since = open->live->written_since();
    if (since != 0) found.emplace_back(since, open->live);
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  LiveFiles out;
  for (auto& [since, live] : found) out.push_back(std::move(live));
  return out;
}

Files::LiveFiles Files::written_among_others(const LiveFile& file) const {
  const std::size_t own = file.written_since() != 0 ? 1 : 0;
  return LiveFile::written_count() > own ? written_files() : LiveFiles();
}

// An error of another file is printed; its next commit retries.
int Files::commit_among(const LiveFiles& written, LiveFile& file, Commit how) {
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

int Files::commit_in_order(LiveFile& file, Commit how) {
  LiveFiles written;
  {
    const std::lock_guard lock(mutex_);
    written = written_among_others(file);
  }
  return commit_among(written, file, how);
}

// REQUIRES: mutex_.
void Files::commit_written() const {
  if (LiveFile::written_count() == 0) return;
  for (const auto& live : written_files()) live->commit();
}

void Files::commit_before_name(const char* path) {
  if (LiveFile::written_count() == 0 || !watches_names() || !may_name_target(path)) return;
  const std::lock_guard lock(mutex_);
  commit_written();
}

void Files::commit_before_new_name(int directory, const char* path) {
  if (LiveFile::written_count() == 0) return;
  const int error = errno;
  if (VELLUM_REAL(faccessat)(directory, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
    commit_before_name(path);
  errno = error;
}

// If the commit fails, the file stays live, and the commit is retried at the end of the process.
void Files::close_unused(std::size_t number) {
  Open& open = *opens_[number];
  if (open.descriptors != 0 || !open.mappings.empty()) return;
  if (open.live != nullptr && !open.live->inherited() &&
      commit_among(written_among_others(*open.live), *open.live, &LiveFile::commit) != 0)
    return;
  if (open.live == nullptr && open.to_be_found) commit_as_found(open);
  forget(number);
}

std::shared_ptr<LiveFile> Files::live(int fd) {
  const unsigned number = entry_of(fd) & kTarget;
  if (number == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  return opens_[number - 1] != nullptr ? opens_[number - 1]->live : nullptr;
}

std::shared_ptr<LiveFile> Files::live(const struct stat& status) {
  if (!inodes_.may_have(status.st_ino)) return nullptr;
  const std::lock_guard lock(mutex_);
  const std::size_t number = find(status);
  return number != kTarget ? opens_[number]->live : nullptr;
}

bool Files::shares_memory() const noexcept { return process_identity() != process_; }

void Files::set_entry(int fd, std::uint32_t entry) noexcept {
  entry_at(fd) = entry;
  const auto end = static_cast<unsigned>(fd) + 1;
  for (unsigned known = entries_end_;
       known < end && !entries_end_.compare_exchange_weak(known, end);) {
  }
}

unsigned Files::next_entry(unsigned fd) const noexcept {
  for (const unsigned end = entries_end_; fd < end; ++fd)
    if (entry_of(static_cast<int>(fd)) != 0) return fd;
  return UINT_MAX;
}

void Files::duplicated(int from, int to) {
  const std::uint32_t entry = entry_of(from);
  if ((entry & kTarget) == 0 || to < 0 || to >= kMaxDescriptors || shares_memory()) return;
  const std::lock_guard lock(mutex_);
  set_entry(to, entry & ~kReopened);
  ++opens_[(entry & kTarget) - 1U]->descriptors;
  if (const auto original = original_fds_.find(from);
      (entry & kReopened) != 0 && original != original_fds_.end())
    keep_original(to, original->second);
  shield_standard(to);
}

// Duplicates share the flag, so every descriptor of the file may have it.
void Files::note_append(int fd) noexcept {
  const std::uint32_t number = entry_of(fd) & kTarget;
  if (number == 0) return;
  for (unsigned other = next_entry(0); other != UINT_MAX; other = next_entry(other + 1))
    if ((entry_of(static_cast<int>(other)) & kTarget) == number)
      entry_at(static_cast<int>(other)) |= kMayAppend;
}

void Files::closed(int fd) {
  const std::uint32_t entry = entry_of(fd);
  if ((entry & kTarget) == 0 || shares_memory()) return;
  const std::lock_guard lock(mutex_);
  entry_at(fd) = 0;
  const std::size_t number = (entry & kTarget) - 1U;
  --opens_[number]->descriptors;
  if (const auto original = original_fds_.find(fd);
      (entry & kReopened) != 0 && original != original_fds_.end()) {
    VELLUM_REAL(close)(original->second);
    original_fds_.erase(original);
  }
  close_unused(number);
}

// REQUIRES: mutex_. If no descriptor is left for it, the program's lock belongs to the new open
// file.
void Files::keep_original(int fd, int original) {
  const int kept = VELLUM_REAL(fcntl)(original, F_DUPFD_CLOEXEC, 0);
  const int own = moved_to_high_number(kept);
  if (own < 0) return;
  original_fds_[fd] = own;
  entry_at(fd) |= kReopened;
}

int Files::original_of(int fd) {
  if ((entry_of(fd) & kReopened) == 0) return -1;
  const std::lock_guard lock(mutex_);
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
  if (fd >= kMaxDescriptors || entry_of(fd) != 0 || flags < 0 || (flags & O_PATH) != 0 ||
      VELLUM_REAL(fstat)(fd, &status) != 0 || !S_ISREG(status.st_mode))
    return false;
  const std::size_t number = target_of(fd);
  if (number == kTarget) return false;
  note_descriptor(fd, number, flags);
  return true;
}

void Files::make_live_or_read_only(int fd) {
  Open& open = *opens_[(entry_of(fd) & kTarget) - 1U];
  if (!writes(fd) || (open.live != nullptr && fd > STDERR_FILENO)) return;
  if (fd <= STDERR_FILENO || make_live(open, fd, true) != 0) let_read_only(fd);
}

// All are recorded before the first becomes live, because that searches for unknown ones.
void Files::adopt_descriptors() {
  if (WatchedFiles::instance().has_copies() || !any_descriptor(is_watched)) return;
  load();
  const std::lock_guard lock(mutex_);
  std::vector<int> ours;
  for (const int fd : descriptors_of_process())
    if (note_if_target(fd)) ours.push_back(fd);
  for (const int fd : ours) make_live_or_read_only(fd);
}

void Files::adopt_descriptor(int fd) {
  if (WatchedFiles::instance().has_copies()) return;
  if (!is_watched(fd)) return note_used(fd);
  load();
  const std::lock_guard lock(mutex_);
  if (note_if_target(fd)) return make_live_or_read_only(fd);
  note_used(fd);
}

void Files::let_read_only(int fd) {
  keep_original(fd, fd);
  reopen_read_only(fd);
  entry_at(fd) = (entry_of(fd) & (kTarget | kReopened)) | kReads;
}

// The C library writes its standard streams without the intercepted write(2). They get an error
// instead of bypassing the live file's memory.
void Files::shield_standard(int fd) const {
  if (fd <= STDERR_FILENO && known(fd) && writes(fd)) reopen_read_only(fd);
}

void Files::explain_failure(int fd) const {
  if (known(fd) && !writes(fd) && errno == EBADF && !ReentrancyGuard::is()) {
    std::fprintf(
        stderr,
        "vellum run: %s: this process may only read it: only one process at a time may write\n",
        path_of(fd).c_str());
    errno = EBADF;
  }
}

void Files::commit_all() noexcept {
  const std::lock_guard lock(mutex_);
  commit_written();
  for (const auto& open : opens_)
    if (open != nullptr && open->live != nullptr && !open->live->inherited()) open->live->commit();
}

// At its end, the program's writes are in its files, as usual. Mapped files stay live, because
// other threads may still use them: the next opening finds them in use, as after a crash.
void Files::close_all() noexcept {
  const std::lock_guard lock(mutex_);
  commit_written();
  for (const auto& open : opens_) {
    if (open == nullptr || open->live == nullptr || open->live->inherited()) continue;
    open->live->commit();
    const ReentrancyGuard inside;
    if (open->mappings.empty()) open->live.reset();
  }
}

}  // namespace vellum::preload
