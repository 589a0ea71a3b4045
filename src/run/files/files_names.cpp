// File names that are removed and reused for other files: unlink(2), rename(2), link(2). Versions
// belong to names, descriptors to files. A file that has lost its name is committed once more and
// then released to the kernel, under the program's existing descriptors and mappings. A file that
// gets a watched name, in whatever way, is that branch's next commit.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "base/files/new_file.hpp"
#include "base/files/real_path.hpp"
#include "run/files/files.hpp"
#include "run/live/live_files.hpp"
#include "run/process/proc.hpp"
#include "run/process/real.hpp"
#include "run/run/watch.hpp"

namespace vellum::preload {
namespace {

using base::path_of;

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool status_at(const std::string& path, struct stat& status) {
  return VELLUM_REAL(lstat)(path.c_str(), &status) == 0;
}

// Whether `file` is `path`, or below it.
bool lies_at(const std::string& file, const std::string& path) {
  return file.compare(0, path.size(), path) == 0 &&
         (file.size() == path.size() || file[path.size()] == '/');
}

// A standard stream was reopened read-only; the kernel handles write(2) again.
void reopen_writable(int fd, bool reads) {
  const off_t at = VELLUM_REAL(lseek)(fd, 0, SEEK_CUR);
  const int append = VELLUM_REAL(fcntl)(fd, F_GETFL) & O_APPEND;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const int instead = VELLUM_REAL(open)(link.c_str(), (reads ? O_RDWR : O_WRONLY) | append);
  if (instead < 0) return;
  VELLUM_REAL(dup2)(instead, fd);
  VELLUM_REAL(close)(instead);
  VELLUM_REAL(lseek)(fd, at, SEEK_SET);
}

}  // namespace

std::string path_at(int directory, const char* path) {
  const std::string given = base::without_end_slashes(path);
  const std::size_t slash = given.rfind('/');
  const std::string parent = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : given.substr(0, slash);
  const int fd = VELLUM_REAL(openat)(directory, parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string out = path_of(fd);
  VELLUM_REAL(close)(fd);
  if (out.empty() || out.back() != '/') out += '/';
  return out + given.substr(slash + 1);
}

// A new descriptor of the file from the library's own, which is open for reading and writing; -1:
// none.
int Files::reopened(const Open& open) {
  const std::lock_guard lock(librarys_mutex_);  // nothing allocates under it
  for (unsigned fd = next_entry(0); fd != UINT_MAX; fd = next_entry(fd + 1)) {
    if (librarys_[fd] != open.file || entry_of(static_cast<int>(fd)) != kLibrarys) continue;
    char link[32];
    std::snprintf(link, sizeof link, "/proc/self/fd/%u", fd);
    const int own = VELLUM_REAL(open)(link, O_RDWR | O_CLOEXEC);
    if (own >= 0) return own;
  }
  return -1;
}

// REQUIRES: mutex_. False: nothing has changed.
bool Files::release(std::size_t number) {
  Open& open = *opens_[number];
  if (open.live != nullptr && open.live->inherited()) return false;
  if (open.live != nullptr && open.live->leave(reopened(open), open.mappings) != 0) return false;
  for (unsigned at = next_entry(0); at != UINT_MAX; at = next_entry(at + 1)) {
    const int fd = static_cast<int>(at);
    const std::uint32_t entry = entry_of(fd);
    if ((entry & kTarget) != number + 1) continue;
    entry_at(fd) = 0;
    if (fd <= STDERR_FILENO && (entry & kWrites) != 0) reopen_writable(fd, (entry & kReads) != 0);
  }
  used_.add(open.file.inode);
  forget(number);
  return true;
}

// REQUIRES: mutex_. Returns the paths of the released files, which the caller has to check again.
std::vector<std::string> Files::release_at(const std::string& path) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < opens_.size(); ++i) {
    if (opens_[i] == nullptr || !lies_at(opens_[i]->target.path, path)) continue;
    std::string was = opens_[i]->target.path;
    if (release(i)) out.push_back(std::move(was));
  }
  return out;
}

// REQUIRES: mutex_. Records the process's descriptors of the file. True: one of them can write.
bool Files::note_descriptors(const struct stat& status, std::size_t number) {
  bool any = false;
  if (!used_.may_have(status.st_ino)) return false;
  for (const int fd : descriptors_of_process()) {
    struct stat other;
    const int flags = VELLUM_REAL(fcntl)(fd, F_GETFL);
    if (fd >= kMaxDescriptors || entry_of(fd) != 0 || flags < 0 || (flags & O_PATH) != 0 ||
        VELLUM_REAL(fstat)(fd, &other) != 0 || !same_file(status, other))
      continue;
    note_descriptor(fd, number, flags);
    any = any || writes(fd);
  }
  return any;
}

// REQUIRES: mutex_. Errors are printed only: the name has changed, whether or not the commit works,
// and the next opening of the file commits it.
void Files::adopt_name(const std::string& path) {
  struct stat status;
  const std::string branch = config_.branch_for(path);
  if (branch.empty() || !status_at(path, status) || !S_ISREG(status.st_mode) ||
      find(status) != kTarget)
    return;
  const std::size_t number = add(status, path, branch);
  if (number == kTarget) return;
  Open& open = *opens_[number];
  if (!note_descriptors(status, number)) {
    commit_as_found(open);
    return close_unused(number);
  }
  if (used_.may_have(open.file.inode) && !kernel_mappings(open.file.inode, path).empty()) {
    complain(path, 0,
             "is mapped while it gets this name: it becomes a version only when it is closed");
    open.to_be_found = true;
    return;
  }
  if (make_live(open, -1) == 0) {
    shield_all(number);
  } else {
    release(number);
  }
}

// REQUIRES: mutex_.
void Files::commit_as_found(const Open& open) {
  reported(open.target.path, [&] { open_live(config_, open.target); });
}

void Files::shield_all(std::size_t number) const {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd)
    if ((entry_of(fd) & kTarget) == number + 1) shield_standard(fd);
}

bool Files::watches_names() const noexcept {
  return active() && !ReentrancyGuard::is() && !shares_memory() && !WatchedFiles::instance().has_copies();
}

int Files::remove_name(int directory, const char* path, const std::function<int()>& call) {
  struct stat status;
  if (path != nullptr) commit_before_name(path);
  if (!watches_names() || path == nullptr ||
      VELLUM_REAL(fstatat)(directory, path, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(status.st_mode) || !inodes_.may_have(status.st_ino))
    return call();
  const std::string name = path_at(directory, path);
  const std::lock_guard lock(mutex_);
  const int result = call();
  if (result != 0) return result;
  const int error = errno;
  release_at(name);
  errno = error;
  return result;
}

// `exchange`: both names have changed.
int Files::rename(const Name& from, const Name& to, bool exchange,
                  const std::function<int()>& call) {
  struct stat source, target;
  if (!watches_names() || from.path == nullptr || to.path == nullptr ||
      VELLUM_REAL(fstatat)(from.directory, from.path, &source, AT_SYMLINK_NOFOLLOW) != 0)
    return call();
  const bool replaces =
      VELLUM_REAL(fstatat)(to.directory, to.path, &target, AT_SYMLINK_NOFOLLOW) == 0;
  if (!S_ISDIR(source.st_mode) && !(replaces && S_ISDIR(target.st_mode)) &&
      !may_name_target(from.path) && !may_name_target(to.path))
    return call();
  load();
  const std::string source_path = path_at(from.directory, from.path);
  const std::string target_path = path_at(to.directory, to.path);
  const std::lock_guard lock(mutex_);
  commit_written();
  const int result = call();
  // For two names of one file, rename(2) keeps both.
  if (result != 0 || (replaces && same_file(source, target))) return result;
  const int error = errno;
  const auto move = [&](const std::vector<std::string>& files, const std::string& before,
                        const std::string& now) {
    adopt_name(now);
    for (const std::string& file : files) adopt_name(now + file.substr(before.size()));
  };
  const auto sources = release_at(source_path), targets = release_at(target_path);
  move(sources, source_path, target_path);
  if (exchange) move(targets, target_path, source_path);
  errno = error;
  return result;
}

int Files::link(const Name& to, const std::function<int()>& call) {
  if (!watches_names() || to.path == nullptr || !may_name_target(to.path)) return call();
  load();
  const std::string path = path_at(to.directory, to.path);
  const std::lock_guard lock(mutex_);
  commit_written();
  const int result = call();
  const int error = errno;
  if (result == 0) adopt_name(path);
  errno = error;
  return result;
}

}  // namespace vellum::preload
