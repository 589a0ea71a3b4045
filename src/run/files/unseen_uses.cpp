#include "run/files/unseen_uses.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "run/live/read_views.hpp"
#include "run/process/proc.hpp"
#include "run/process/real.hpp"
#include "run/run/watch.hpp"

namespace vellum::preload {

InodeSet UnseenUses::used_;

void UnseenUses::note(int fd) noexcept {
  struct stat status;
  if (WatchedFiles::instance().active() && VELLUM_REAL(fstat)(fd, &status) == 0 &&
      S_ISREG(status.st_mode))
    used_.add(status.st_ino);
}

void UnseenUses::note_all() {
  for (const int fd : descriptors_of_process()) note(fd);
  for_mappings([](const KernelMapping& mapping) { used_.add(mapping.inode); });
}

int UnseenUses::refuse(const OpenFile& open, int fd) {
  if (!used_.may_have(open.file.inode)) return 0;
  const auto mappings = kernel_mappings(open.file.inode, open.target.path);
  if (!std::all_of(mappings.begin(), mappings.end(),
                   [](const KernelMapping& mapping) { return mapping.shared_to_read; }))
    return complain(open.target.path, EBUSY,
                    "this process has mapped it for writing, or privately: unmap it before you "
                    "open it for writing");
  for (const int other : descriptors_of_process()) {
    struct stat status;
    if (other == fd || Descriptors::facts(other) != 0 || !writes_a_file(other)) continue;
    if (VELLUM_REAL(fstat)(other, &status) == 0 && status.st_ino == open.file.inode &&
        status.st_dev == open.file.device)
      return complain(open.target.path, EBUSY,
                      "this process has had it open for writing since before it had this name");
  }
  return 0;
}

int UnseenUses::keep_views(const OpenFile& open) {
  if (!used_.may_have(open.file.inode)) return 0;
  const auto mappings = kernel_mappings(open.file.inode, open.target.path);
  if (mappings.empty()) return 0;
  const int fd = VELLUM_REAL(open)(open.target.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  bool all = true;
  for (const KernelMapping& mapping : mappings)
    all = all && (!mapping.shared_to_read || read_views().add(open.live->data(), fd, mapping.begin,
                                                              mapping.end, mapping.offset_bytes));
  VELLUM_REAL(close)(fd);
  return all ? 0 : complain(open.target.path, EBUSY, "has too many read-only mappings");
}

}  // namespace vellum::preload
