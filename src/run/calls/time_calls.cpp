// File times that the program sets itself: utime(2) and similar calls. They do not count as a
// change by another process, and they persist: earlier writes are already in the file, and no later
// commit touches it.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

#include "run/files/files.hpp"
#include "run/files/old_version.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

std::shared_ptr<LiveFile> live_at(int directory, const char* path, int flags) {
  struct stat status;
  Files& files = Files::instance();
  if (ReentrancyGuard::is() || !files.active()) return nullptr;
  if (path == nullptr) return files.live(directory);
  if (VELLUM_REAL(fstatat)(directory, path, &status, flags) != 0) return nullptr;
  return files.live(status);
}

// `chosen`: the program sets a specific modification time, not the current time.
template <typename Call>
int with_times(const std::shared_ptr<LiveFile>& file, bool chosen, const Call& call) {
  if (file == nullptr) return call();
  if (chosen && !file->inherited()) Files::instance().commit_in_order(*file, &LiveFile::commit);
  const int result = call();
  if (result == 0) file->note_own_change();
  return result;
}

bool chosen(const timespec* times) {
  return times != nullptr && times[1].tv_nsec != UTIME_NOW && times[1].tv_nsec != UTIME_OMIT;
}

}  // namespace
}  // namespace vellum::preload

using vellum::preload::change_at;
using vellum::preload::chosen;
using vellum::preload::live_at;
using vellum::preload::with_times;

VELLUM_PRELOAD int utime(const char* path, const utimbuf* times) noexcept {
  return change_at(AT_FDCWD, path, true, [&](const char* at) {
    return with_times(live_at(AT_FDCWD, at, 0), times != nullptr,
                      [&] { return VELLUM_REAL(utime)(at, times); });
  });
}
VELLUM_PRELOAD int utimes(const char* path, const timeval* times) noexcept {
  return change_at(AT_FDCWD, path, true, [&](const char* at) {
    return with_times(live_at(AT_FDCWD, at, 0), times != nullptr,
                      [&] { return VELLUM_REAL(utimes)(at, times); });
  });
}
VELLUM_PRELOAD int lutimes(const char* path, const timeval* times) noexcept {
  return change_at(AT_FDCWD, path, false, [&](const char* at) {
    return with_times(live_at(AT_FDCWD, at, AT_SYMLINK_NOFOLLOW), times != nullptr,
                      [&] { return VELLUM_REAL(lutimes)(at, times); });
  });
}
VELLUM_PRELOAD int futimes(int fd, const timeval* times) noexcept {
  return with_times(live_at(fd, nullptr, 0), times != nullptr,
                    [&] { return VELLUM_REAL(futimes)(fd, times); });
}
VELLUM_PRELOAD int futimesat(int directory, const char* path, const timeval* times) noexcept {
  return change_at(directory, path, true, [&](const char* at) {
    return with_times(live_at(directory, at, 0), times != nullptr,
                      [&] { return VELLUM_REAL(futimesat)(directory, at, times); });
  });
}
VELLUM_PRELOAD int utimensat(int directory, const char* path, const timespec* times,
                             int flags) noexcept {
  return change_at(directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, [&](const char* at) {
    return with_times(live_at(directory, at, flags), chosen(times),
                      [&] { return VELLUM_REAL(utimensat)(directory, at, times, flags); });
  });
}
VELLUM_PRELOAD int futimens(int fd, const timespec* times) noexcept {
  return with_times(live_at(fd, nullptr, 0), chosen(times),
                    [&] { return VELLUM_REAL(futimens)(fd, times); });
}
