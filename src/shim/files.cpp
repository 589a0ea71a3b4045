#include "shim/files.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/error_number.hpp"
#include "base/fork_count.hpp"
#include "base/real_path.hpp"
#include "shim/proc.hpp"
#include "shim/real.hpp"

namespace vellum::shim {
namespace {

using base::path_of;

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::uint64_t filter_bit(std::uint64_t inode) noexcept {
  return 1ULL << (inode * 0x9e3779b97f4a7c15 >> 58);
}

bool is_link(const char* path) {
  struct stat status;
  return VELLUM_REAL(lstat)(path, &status) == 0 && S_ISLNK(status.st_mode);
}

// The kernel refuses to write by it, then.
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

std::array<std::atomic<std::uint16_t>, Files::kMaxDescriptors> Files::marks_;

int complain(const std::string& path, int error, const char* what) {
  std::fprintf(stderr, "vellum run: %s: %s\n", path.c_str(), what);
  return error;
}

Files& Files::instance() {
  static Files* const files = [] {
    const Inside inside;
    static Files* made = new Files;
    if (!made->active()) return made;
    base::fork_count();
    std::atexit([] { made->close_all(); });
    pthread_atfork([] { made->before_fork(); }, [] { made->after_fork(false); },
                   [] { made->after_fork(true); });
    return made;
  }();
  return *files;
}

Files::Files() : config_(Config::from_environment()), process_(getpid()) {}

std::size_t Files::find(const struct stat& status) const {
  for (std::size_t i = 0; i < opens_.size(); ++i)
    if (opens_[i] != nullptr && opens_[i]->inode == status.st_ino &&
        opens_[i]->device == status.st_dev)
      return i;
  return kTarget;
}

std::size_t Files::target_of(int fd) {
  struct stat status;
  if (VELLUM_REAL(fstat)(fd, &status) != 0) return kTarget;
  if (const std::size_t known = find(status); known != kTarget) return known;
  const std::string path = path_of(fd);
  const std::string branch = config_.branch_for(path);
  return branch.empty() ? kTarget : add(status, path, branch);
}

std::size_t Files::add(const struct stat& status, std::string path, std::string branch) {
  auto open = std::make_unique<Open>();
  open->target = {std::move(path), std::move(branch), {}};
  open->device = status.st_dev;
  open->inode = status.st_ino;
  const auto free = std::find(opens_.begin(), opens_.end(), nullptr);
  const auto number = static_cast<std::size_t>(free - opens_.begin());
  if (number == kTarget) return kTarget;
  if (free == opens_.end()) opens_.emplace_back();
  opens_[number] = std::move(open);
  note_opens();
  return number;
}

// Readers of an old version: the file itself, and what lies beside it by databases' custom (LMDB's
// lock.mdb, SQLite's -wal), is private.
const char* Files::redirected(int directory, const char* path, std::string& storage) const {
  if (config_.targets.empty() || config_.targets.front().copy.empty()) return path;
  const std::string name(last_part(path));
  for (const Target& target : config_.targets) {
    const std::string own(last_part(target.path));
    const bool beside = name.starts_with(own + "-") || (own == "data.mdb" && name == "lock.mdb");
    if (name != own && !beside) continue;
    const std::string before(path, std::strlen(path) - name.size());
    const std::string parent = before.empty() ? std::string(".") : before;
    const int at = VELLUM_REAL(openat)(directory, parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) continue;
    const bool there = path_of(at) + "/" + own == target.path;
    VELLUM_REAL(close)(at);
    if (!there) continue;
    storage = name == own ? target.copy : target.copy.substr(0, target.copy.rfind('/') + 1) + name;
    return storage.c_str();
  }
  return path;
}

bool Files::is_copy(const std::string& path) const {
  return std::any_of(config_.targets.begin(), config_.targets.end(),
                     [&](const Target& target) { return target.copy == path; });
}

bool Files::names_target(int directory, const char* path) const {
  const int fd = VELLUM_REAL(openat)(directory, path, O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ours = !config_.branch_for(path_of(fd)).empty();
  VELLUM_REAL(close)(fd);
  return ours;
}

// By its last part: one of a link to a file counts when that is open already.
bool Files::may_name_target(const char* path) const {
  const std::string name(last_part(path));
  return std::any_of(config_.targets.begin(), config_.targets.end(), [&](const Target& target) {
    const std::string pattern(last_part(target.path));
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

// Without the lock: most files are none of ours, and Vellum's own threads open some while others of
// them are waited for with it. What has another name, by a link, is asked for its own.
bool Files::may_be_target(int fd, const char* path) const {
  struct stat status;
  if (VELLUM_REAL(fstat)(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if ((inodes_ & filter_bit(status.st_ino)) != 0 || may_name_target(path)) return true;
  if (status.st_nlink <= 1 && !is_link(path)) return false;
  return !config_.branch_for(path_of(fd)).empty();
}

int Files::opened(int fd, const char* path, int flags, bool truncate) {
  if (!may_be_target(fd, path)) return fd;
  const std::lock_guard lock(mutex_);
  const std::size_t number = target_of(fd);
  if (number == kTarget) return fd;
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
  const bool synchronous = (flags & (O_SYNC | O_DSYNC)) != 0;
  mark_at(fd) = static_cast<std::uint16_t>((number + 1) | (synchronous ? kSynchronous : 0U) |
                                           (writes ? kWrites : 0U) | (reads ? kReads : 0U));
  ++opens_[number]->descriptors;
}

// What it was opened and mapped by without this library would go past the live file's memory: a
// mapping from before, a descriptor that comes from another program or had another file's name.
int Files::refuse_unseen(const Open& open, int fd, const std::vector<int>& programs) const {
  if (kernel_maps(open.inode, open.target.path))
    return complain(open.target.path, EBUSY,
                    "this process has mapped it to read, and cannot open it to write before it has "
                    "unmapped that");
  for (const int other : programs) {
    struct stat status;
    if (other == fd || mark_of(other) != 0 || !writes_a_file(other)) continue;
    if (VELLUM_REAL(fstat)(other, &status) == 0 && status.st_ino == open.inode &&
        status.st_dev == open.device)
      return complain(open.target.path, EBUSY,
                      "this process has it open to write already, since before it had this name");
  }
  return 0;
}

int Files::make_live(Open& open, int fd, bool quiet) {
  const std::vector<int> programs = descriptors_of_process();
  if (const int error = refuse_unseen(open, fd, programs)) return error;
  const auto body = [&] {
    open.live = std::make_shared<LiveFile>(config_, open.target);
    note_opens();
    mark_librarys(programs);
  };
  if (!quiet) return reported(open.target.path, body);
  const Inside inside;
  return base::error_of(body, [](const char*) {});
}

// When it cannot be committed, it stays live, and the end of the process tries again.
void Files::close_unused(std::size_t number) {
  Open& open = *opens_[number];
  if (open.descriptors != 0 || !open.mappings.empty()) return;
  if (open.live != nullptr && !open.live->inherited() && open.live->commit() != 0) return;
  const Inside inside;
  opens_[number].reset();
  note_opens();
}

void Files::note_opens() {
  std::uintptr_t lowest = UINTPTR_MAX, highest = 0;
  std::uint64_t inodes = 0;
  for (const auto& open : opens_) {
    if (open == nullptr) continue;
    inodes |= filter_bit(open->inode);
    if (open->live == nullptr) continue;
    const auto data = reinterpret_cast<std::uintptr_t>(open->live->data());
    lowest = std::min(lowest, data);
    highest = std::max(highest, data + open->live->capacity_bytes());
  }
  inodes_ = inodes;
  lowest_ = lowest;
  highest_ = highest;
}

std::shared_ptr<LiveFile> Files::live(int fd) {
  const unsigned number = mark_of(fd) & kTarget;
  if (number == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  return opens_[number - 1] != nullptr ? opens_[number - 1]->live : nullptr;
}

std::shared_ptr<LiveFile> Files::live(const struct stat& status) {
  if ((inodes_ & filter_bit(status.st_ino)) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const std::size_t number = find(status);
  return number != kTarget ? opens_[number]->live : nullptr;
}

bool Files::shares_memory() const noexcept { return getpid() != process_; }

unsigned Files::next_marked(unsigned fd) const noexcept {
  for (; fd < kMaxDescriptors; ++fd)
    if (mark_of(static_cast<int>(fd)) != 0) return fd;
  return UINT_MAX;
}

void Files::duplicated(int from, int to) {
  const std::uint16_t mark = mark_of(from);
  if ((mark & kTarget) == 0 || to < 0 || to >= kMaxDescriptors || shares_memory()) return;
  const std::lock_guard lock(mutex_);
  mark_at(to) = mark;
  ++opens_[(mark & kTarget) - 1U]->descriptors;
  shield_standard(to);
}

void Files::closed(int fd) {
  const std::uint16_t mark = mark_of(fd);
  if ((mark & kTarget) == 0 || shares_memory()) return;
  const std::lock_guard lock(mutex_);
  mark_at(fd) = 0;
  const std::size_t number = (mark & kTarget) - 1U;
  --opens_[number]->descriptors;
  close_unused(number);
}

// All are known before the first becomes live, which looks for some that are not.
void Files::adopt_descriptors() {
  if (!config_.targets.front().copy.empty()) return;
  const std::lock_guard lock(mutex_);
  std::vector<int> ours;
  for (const int fd : descriptors_of_process()) {
    const int flags = VELLUM_REAL(fcntl)(fd, F_GETFL);
    struct stat status;
    if (fd >= kMaxDescriptors || mark_of(fd) != 0 || flags < 0 || (flags & O_PATH) != 0 ||
        VELLUM_REAL(fstat)(fd, &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    const std::size_t number = target_of(fd);
    if (number == kTarget) continue;
    note_descriptor(fd, number, flags);
    ours.push_back(fd);
  }
  for (const int fd : ours) {
    Open& open = *opens_[(mark_of(fd) & kTarget) - 1U];
    if (!writes(fd) || (open.live != nullptr && fd > STDERR_FILENO)) continue;
    if (fd <= STDERR_FILENO || make_live(open, fd, true) != 0) let_read_only(fd);
  }
}

void Files::let_read_only(int fd) {
  reopen_read_only(fd);
  mark_at(fd) = static_cast<std::uint16_t>((mark_of(fd) & kTarget) | kReads);
}

// The C library writes its standard streams without the write(2) that this library stands in front
// of: they get an error, and do not go past the live file's memory.
void Files::shield_standard(int fd) const {
  if (fd <= STDERR_FILENO && known(fd) && writes(fd)) reopen_read_only(fd);
}

void Files::explain_failure(int fd) const {
  if (known(fd) && !writes(fd) && errno == EBADF && !Inside::is()) {
    std::fprintf(stderr,
                 "vellum run: %s: this process may only read it: one process at a time writes\n",
                 path_of(fd).c_str());
    errno = EBADF;
  }
}

void Files::commit_all() noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& open : opens_)
    if (open != nullptr && open->live != nullptr && !open->live->inherited()) open->live->commit();
}

// What the program has written is in its files when it ends, as ever. What is mapped stays, as
// other threads may still be at it: for the next who opens it, it counts as in use when a crash
// came.
void Files::close_all() noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& open : opens_) {
    if (open == nullptr || open->live == nullptr || open->live->inherited()) continue;
    open->live->commit();
    const Inside inside;
    if (open->mappings.empty()) open->live.reset();
  }
}

}  // namespace vellum::shim
