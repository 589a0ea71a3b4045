// memory/shared/shared_directory.hpp: the directories of shared files (shared_file.hpp), and which
// files stay there.
//
// Files of open versions are in the share directory. The last reader of a file removes it, and the
// next process that opens one removes the files of killed readers.
//
// With VELLUM_KEEP_VERSIONS=BYTES, files are in its subdirectory vellum-kept-UID instead, and stay:
// the next opening of the version finds the pages decoded. They have at most that many bytes
// together, as if all of their pages existed, and at most half of the file system. A new file takes
// the place of those that were opened or filled longest ago and have no reader. They use memory that
// nothing reclaims, so all without a reader go when an opening finds less than a sixteenth of the
// machine's memory available.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/threads/forked_locks.hpp"

struct stat;

namespace vellum::region {

inline constexpr const char* kSharedHeaderStart = "vellum shared memory: ";
inline constexpr std::size_t kSharedHeaderBytes = 4096;  // the last ones of a file

// A descriptor, in a tmpfs; -1: there is none. VELLUM_SHARE_DIRECTORY; without it, /dev/shm or else
// XDG_RUNTIME_DIR.
int open_share_directory() noexcept;
// Its subdirectory for kept files, which is created; -1 if it cannot be, or is another user's.
int open_kept_directory() noexcept;
// VELLUM_KEEP_VERSIONS; 0: not set. Errc::invalid_argument: its value is no number of bytes.
std::uint64_t kept_limit_bytes();

// -1 with errno.
int open_in_share_directory(int directory, const char* name) noexcept;
// Whether it is a plain file that only this user can access, without a second name.
bool is_own_shared_file(const struct stat& status) noexcept;
// A lock of fcntl(2), F_OFD_SETLK. False: another process has one. Async-signal-safe.
bool set_shared_lock(int fd, short kind, std::uint64_t first, std::uint64_t count) noexcept;

// Removes a shared file that has no reader. A reader that opens it concurrently detects that. False:
// the file has a reader, or is none of these.
bool remove_unread(int directory, const char* name) noexcept;
void remove_leftovers(int directory);

// Serves creators of kept files one at a time, and makes room.
class KeptFilesLock {
 public:
  // Waits up to 200 ms for the others. Throws Errc::out_of_memory.
  explicit KeptFilesLock(int directory);
  ~KeptFilesLock();
  KeptFilesLock(const KeptFilesLock&) = delete;
  KeptFilesLock& operator=(const KeptFilesLock&) = delete;

  // Makes room for a new file. False, and nothing is removed: it does not fit beside those that are
  // read, or memory is short, or another process has the lock.
  bool make_room(std::uint64_t file_bytes, std::uint64_t limit_bytes);

 private:
  const int directory_;
  base::ForkedLocks forked_;
  bool locked_ = false;
};
// Removes all kept files without a reader if the machine is short of memory.
void drop_kept_if_short_of_memory(int directory);

}  // namespace vellum::region
