#include "run/files/old_version.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <string_view>

#include "base/files/real_path.hpp"
#include "run/files/files.hpp"
#include "run/process/real.hpp"
#include "run/run/run_record.hpp"
#include "run/run/watch.hpp"

namespace vellum::preload {
namespace {

constexpr int kMaxLinks = 40;  // the kernel's limit

std::string_view name_in(std::string_view path) { return path.substr(path.rfind('/') + 1); }
std::string_view directory_in(std::string_view path) {
  return path.substr(0, path.size() - name_in(path).size());
}

bool goes_beside(std::string_view own, std::string_view name) {
  return (name.starts_with(own) && name.substr(own.size()).starts_with('-')) ||
         (own == "data.mdb" && name == "lock.mdb");
}

bool has_kind(int directory, const char* path, mode_t kind) {
  struct stat status;
  return VELLUM_REAL(fstatat)(directory, path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         (status.st_mode & S_IFMT) == kind;
}

// The directory of a path's last part, as the kernel resolves it; empty if there is none.
std::string directory_of(int directory, const char* path) {
  const std::string parent(directory_in(path));
  const int fd = VELLUM_REAL(openat)(directory, parent.empty() ? "." : parent.c_str(),
                                     O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string out = base::path_of(fd);
  VELLUM_REAL(close)(fd);
  if (!out.ends_with('/')) out += '/';
  return out;
}

bool leads_to_watched(int directory, const char* path) {
  const int fd = VELLUM_REAL(openat)(directory, path, O_PATH | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;  // a link may lead to the name of a missing file
  const bool watched = WatchedFiles::instance().watches(fd);
  VELLUM_REAL(close)(fd);
  return watched;
}

// The link's target, relative to the link's directory; empty if it is not a link.
std::string behind_link(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t length = readlink(path.c_str(), target, sizeof target);
  if (length <= 0) return {};
  const std::string_view text(target, static_cast<std::size_t>(length));
  return text.starts_with('/') ? std::string(text)
                               : std::string(directory_in(path)) + std::string(text);
}

}  // namespace

SeenPath::SeenPath(int directory, const char* path, bool follows) : given_(path) {
  const WatchedFiles& watch = WatchedFiles::instance();
  if (!watch.has_copies() || path == nullptr || *path == '\0' || ReentrancyGuard::is()) return;
  const int before = errno;
  if (!(watch.may_name_companion(path) && find(directory, path)) && follows)
    find_behind_link(directory, path);
  errno = before;
}

// Compares the last part and its directory. A directory with such a name is not one of the files
// that databases keep.
bool SeenPath::find(int directory, const char* path) {
  const std::string_view name = name_in(path);
  const auto& targets = Files::instance().targets();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::string_view own = name_in(targets[i].path);
    const bool is_own = name == own;
    if (!is_own && (!goes_beside(own, name) || has_kind(directory, path, S_IFDIR))) continue;
    if (directory_of(directory, path) != directory_in(targets[i].path)) continue;
    if (is_own) note_opened(i);
    is_version_ = is_own;
    instead_ = std::string(directory_in(targets[i].copy)) + std::string(name);
    return true;
  }
  return false;
}

// Allocates only for links that lead to a watched file.
void SeenPath::find_behind_link(int directory, const char* path) {
  if (!has_kind(directory, path, S_IFLNK) || !leads_to_watched(directory, path)) return;
  std::string at = path_at(directory, path);
  for (int i = 0; i < kMaxLinks; ++i) {
    at = behind_link(at);
    if (at.empty() || find(AT_FDCWD, at.c_str())) return;
  }
}

bool version_lies_below(int directory, const char* path) {
  if (!WatchedFiles::instance().has_copies() || path == nullptr || ReentrancyGuard::is() ||
      !has_kind(directory, path, S_IFDIR))
    return false;
  const std::string above = path_at(directory, path) + '/';
  for (const RunTarget& target : Files::instance().targets())
    if (target.path.starts_with(above)) return true;
  return false;
}

}  // namespace vellum::preload
