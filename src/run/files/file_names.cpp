#include "run/files/file_names.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/files/new_file.hpp"
#include "base/files/real_path.hpp"
#include "run/files/unseen_uses.hpp"
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
bool is_at(const std::string& file, const std::string& path) {
  return file.compare(0, path.size(), path) == 0 &&
         (file.size() == path.size() || file[path.size()] == '/');
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

bool FileNames::is_target(int directory, const char* path) {
  const int fd = VELLUM_REAL(openat)(directory, path, O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ours = WatchedFiles::instance().watches(fd);
  VELLUM_REAL(close)(fd);
  return ours;
}

bool FileNames::may_be_target(const char* path) { return WatchedFiles::instance().may_name(path); }

void FileNames::commit_before_change(const char* path) {
  if (LiveFile::written_count() == 0 || !states_.watches_names() || !may_be_target(path)) return;
  const std::lock_guard lock(states_.mutex());
  states_.commit_written();
}

void FileNames::commit_before_new(int directory, const char* path) {
  if (LiveFile::written_count() == 0) return;
  const int error = errno;
  if (VELLUM_REAL(faccessat)(directory, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
    commit_before_change(path);
  errno = error;
}

// REQUIRES: FileStates::mutex(). Returns the paths of the released files, which the caller has to
// check again.
std::vector<std::string> FileNames::release_at(const std::string& path) {
  std::vector<std::string> out;
  const OpenFiles& files = states_.files();
  for (std::size_t i = 0; i < files.end(); ++i) {
    if (!files.has(i) || !is_at(files[i].target.path, path)) continue;
    std::string was = files[i].target.path;
    if (states_.release(i)) out.push_back(std::move(was));
  }
  return out;
}

// REQUIRES: FileStates::mutex(). Records the process's descriptors of the file. True: one of them
// can write.
bool FileNames::note_descriptors(const struct stat& status, std::size_t number) {
  bool any = false;
  if (!UnseenUses::may_have(status.st_ino)) return false;
  for (const int fd : descriptors_of_process()) {
    struct stat other;
    const int flags = VELLUM_REAL(fcntl)(fd, F_GETFL);
    if (fd >= Descriptors::kMaxDescriptors || Descriptors::facts(fd) != 0 || flags < 0 ||
        (flags & O_PATH) != 0 || VELLUM_REAL(fstat)(fd, &other) != 0 || !same_file(status, other))
      continue;
    states_.note_descriptor(fd, number, flags);
    any = any || Descriptors::writes(fd);
  }
  return any;
}

// REQUIRES: FileStates::mutex(). Errors are printed only: the name has changed, whether or not the
// commit works, and the next opening of the file commits it.
void FileNames::adopt(const std::string& path) {
  struct stat status;
  const std::string branch = states_.config().branch_for(path);
  if (branch.empty() || !status_at(path, status) || !S_ISREG(status.st_mode) ||
      states_.files().find(status) != OpenFiles::kNone)
    return;
  const std::size_t number = states_.add(status, path, branch);
  if (number == OpenFiles::kNone) return;
  OpenFile& open = states_.files()[number];
  if (!note_descriptors(status, number)) {
    states_.commit_as_found(open);
    return states_.close_unused(number);
  }
  if (UnseenUses::may_have(open.file.inode) && !kernel_mappings(open.file.inode, path).empty()) {
    complain(path, 0,
             "is mapped while it gets this name: it becomes a version only when it is closed");
    open.to_be_found = true;
    return;
  }
  if (states_.make_live(open, -1) == 0) {
    for (int fd = 0; fd <= STDERR_FILENO; ++fd)
      if (Descriptors::target(fd) == number) shield_standard(fd);
  } else {
    states_.release(number);
  }
}

int FileNames::remove(int directory, const char* path, const std::function<int()>& call) {
  struct stat status;
  if (path != nullptr) commit_before_change(path);
  if (!states_.watches_names() || path == nullptr ||
      VELLUM_REAL(fstatat)(directory, path, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(status.st_mode) || !OpenFiles::may_have(status.st_ino))
    return call();
  const std::string name = path_at(directory, path);
  const std::lock_guard lock(states_.mutex());
  const int result = call();
  if (result != 0) return result;
  const int error = errno;
  release_at(name);
  errno = error;
  return result;
}

// `exchange`: both names have changed.
int FileNames::rename(const Name& from, const Name& to, bool exchange,
                      const std::function<int()>& call) {
  struct stat source, target;
  if (!states_.watches_names() || from.path == nullptr || to.path == nullptr ||
      VELLUM_REAL(fstatat)(from.directory, from.path, &source, AT_SYMLINK_NOFOLLOW) != 0)
    return call();
  const bool replaces =
      VELLUM_REAL(fstatat)(to.directory, to.path, &target, AT_SYMLINK_NOFOLLOW) == 0;
  if (!S_ISDIR(source.st_mode) && !(replaces && S_ISDIR(target.st_mode)) &&
      !may_be_target(from.path) && !may_be_target(to.path))
    return call();
  states_.load();
  const std::string source_path = path_at(from.directory, from.path);
  const std::string target_path = path_at(to.directory, to.path);
  const std::lock_guard lock(states_.mutex());
  states_.commit_written();
  const int result = call();
  // For two names of one file, rename(2) keeps both.
  if (result != 0 || (replaces && same_file(source, target))) return result;
  const int error = errno;
  const auto move = [&](const std::vector<std::string>& files, const std::string& before,
                        const std::string& now) {
    adopt(now);
    for (const std::string& file : files) adopt(now + file.substr(before.size()));
  };
  const auto sources = release_at(source_path), targets = release_at(target_path);
  move(sources, source_path, target_path);
  if (exchange) move(targets, target_path, source_path);
  errno = error;
  return result;
}

int FileNames::link(const Name& to, const std::function<int()>& call) {
  if (!states_.watches_names() || to.path == nullptr || !may_be_target(to.path)) return call();
  states_.load();
  const std::string path = path_at(to.directory, to.path);
  const std::lock_guard lock(states_.mutex());
  states_.commit_written();
  const int result = call();
  const int error = errno;
  if (result == 0) adopt(path);
  errno = error;
  return result;
}

}  // namespace vellum::preload
