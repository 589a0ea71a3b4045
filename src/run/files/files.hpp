// run/files/files.hpp: the process's descriptors and mappings of files that `vellum run` was given.
//
// A file is live from its first opening for writing until it is no longer open or mapped; then it
// is committed, because a closed file must have the program's writes. Until the file is live, the
// kernel handles descriptors that only read; while it is live, they use its memory. When a live
// file loses its name, it is released to the kernel (file_names.hpp).
//
// A child of fork() inherits its parent's live files, and may read them.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "run/files/descriptors.hpp"
#include "run/files/file_mappings.hpp"
#include "run/files/file_names.hpp"
#include "run/files/file_states.hpp"
#include "run/files/own_descriptors.hpp"

namespace vellum::preload {

// Opens, duplicates, closes and inherits descriptors. Threads: any.
class Files {
 public:
  // The process's instance, which is never destroyed.
  static Files& instance();
  // Whether there is anything to do at all.
  bool active() const noexcept { return active_; }
  bool shares_memory() const noexcept { return states_.shares_memory(); }

  FileNames& names() noexcept { return names_; }
  FileMappings& mappings() noexcept { return mappings_; }
  OwnDescriptors& own_descriptors() noexcept { return states_.own_descriptors(); }

  // The files that `vellum run` was given. Allocates.
  const std::vector<RunTarget>& targets();

  // After an open(2) without O_TRUNC. Returns `fd`; or -1 and errno, and `fd` is closed.
  int opened(int fd, const char* path, int flags, bool truncate);
  // Not for a child of vfork(2), whose memory is its parent's.
  void duplicated(int from, int to);
  void closed(int fd);  // call before it is closed
  // The original open file of a descriptor that the library has reopened: the program's locks
  // belong to it. -1: the descriptor was not reopened.
  int original_of(int fd);
  // For the descriptors that a new program starts with: a file without other writers is live at
  // once. A file that is open in the process that passed it down is read-only.
  void adopt_descriptors();
  // The same for a descriptor received from another process.
  void adopt_descriptor(int fd);

  bool any_live() noexcept { return states_.files().any_live(); }
  // The live file behind a descriptor; null if the kernel handles the descriptor. Costs one load
  // for descriptors of other files.
  std::shared_ptr<LiveFile> live(int fd);
  // The live file with the device and inode of `status`; null if there is none. One that is kept is
  // committed and closed first.
  std::shared_ptr<LiveFile> live(const struct stat& status);
  // The same for its size, which a kept file has on disk: null for that.
  std::shared_ptr<LiveFile> live_with_size(const struct stat& status);
  // Before another program is started, or another process takes part: commits and closes the kept
  // files.
  void settle() noexcept;

  // See FileStates.
  int commit_in_order(LiveFile& file, FileStates::Commit how) {
    return states_.commit_in_order(file, how);
  }
  // Before another program replaces this one, and its memory with it: commits.
  void commit_all() noexcept;
  // At the end of the process: commits and closes.
  void close_all() noexcept;

 private:
  Files();
  void keep_original(int fd, int original);
  bool note_if_target(int fd);
  void make_live_or_read_only(int fd);
  void let_read_only(int fd);
  void before_fork();
  void after_fork(bool child);

  const bool active_;
  FileStates states_;
  FileNames names_{states_};
  FileMappings mappings_{states_};
  // The library's descriptors of original open files, by the program's. Under FileStates::mutex().
  std::unordered_map<int, int> original_fds_;
};

// After write(2) has failed: explains the failure if another process may write the descriptor's
// file, and this one may only read it.
void explain_failed_write(int fd);

// Reading and writing a live file through a descriptor: return the count, or -1 and errno, as preadv2(2) and pwritev2(2) do; `at` may be
// mapped_io::kOwnOffset. A write commits if its descriptor was opened with O_SYNC or O_DSYNC, or if
// `flags` has RWF_SYNC or RWF_DSYNC.
ssize_t read_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                  int flags = 0);
ssize_t write_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                   int flags = 0);

}  // namespace vellum::preload
