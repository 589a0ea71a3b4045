// shim/files.hpp: which of the process's descriptors and mappings are of files that `vellum run`
// was given.
//
// A file is live from its first opening to write until nothing of it is open or mapped any more; it
// is committed then, as what a program has written is in a file that it closes. Descriptors that
// only read are the kernel's until then, and go through the live file's memory while there is one.
//
// A child of fork() has what its parent had, and may read it.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "atomic/mappings.hpp"
#include "shim/config.hpp"
#include "shim/live_file.hpp"

namespace vellum::shim {

// One line that names the file; returns the error.
int complain(const std::string& path, int error, const char* what);

class Files {
 public:
  // The process's own, never destroyed.
  static Files& instance();
  // Whether there is anything to do at all.
  bool active() const noexcept { return !config_.targets.empty(); }

  // Before a file is opened. The path to open instead, when the program is to read a copy; else
  // what was given.
  const char* redirected(int directory, const char* path, std::string& storage) const;
  bool is_copy(const std::string& path) const;
  // Whether a path names one of the files, as it is now.
  bool names_target(int directory, const char* path) const;
  // Whether one may come to: by its last part, or as it is now.
  bool may_name_target(const char* path) const;
  // After it was opened, by flags without O_TRUNC: `fd`, or -1 and errno, and it is closed again.
  int opened(int fd, const char* path, int flags, bool truncate);

  // The live file behind a descriptor; null: none, the kernel's. One load where the descriptor has
  // nothing to do with us.
  std::shared_ptr<LiveFile> live(int fd);
  bool synchronous(int fd) const noexcept { return (mark_of(fd) & kSynchronous) != 0; }
  // What it was opened for, of those that are known().
  bool reads(int fd) const noexcept { return (mark_of(fd) & kReads) != 0; }
  bool writes(int fd) const noexcept { return (mark_of(fd) & kWrites) != 0; }
  bool known(int fd) const noexcept { return (mark_of(fd) & kTarget) != 0; }
  // Vellum's own. Some of these the C library closes by itself, as closedir(3) does: the number may
  // be another file's by then.
  bool librarys(int fd);
  void note_librarys(int fd, bool is);
  // Not in a child of vfork(2), whose memory is its parent's.
  void duplicated(int from, int to);
  void closed(int fd);                  // before it is
  bool shares_memory() const noexcept;  // with a parent that is another process
  // The first descriptor from this one on of which something is known; none: UINT_MAX.
  unsigned next_marked(unsigned fd) const noexcept;

  // A file that is live, by what stat(2) says of it.
  std::shared_ptr<LiveFile> live(const struct stat& status);

  // Mappings. `map` is for descriptors that are known(): the address, MAP_FAILED and errno, or null
  // when it is the kernel's to map.
  void* map(int fd, std::size_t length_bytes, int protection, int flags, off_t offset_bytes);
  std::shared_ptr<LiveFile> mapped_at(const void* address);
  int unmap(void* address, std::size_t length_bytes);
  int remap(void* address, std::size_t old_bytes, std::size_t new_bytes);

  // For the end of the process: commits, closes.
  void close_all() noexcept;
  // Before another program takes its place, which knows nothing of this one's memory: commits.
  void commit_all() noexcept;
  // What such a program finds open: a file that nobody else writes is live at once. One that
  // another process has open, which handed it down, may be read only.
  void adopt_descriptors();
  // After write(2) of a descriptor has failed: tells of one that may be read only for that reason.
  void explain_failure(int fd) const;

 private:
  // What is known of a descriptor: 0: nothing.
  static constexpr std::uint16_t kTarget = 0x0fff;       // 1 + its number
  static constexpr std::uint16_t kSynchronous = 0x1000;  // O_SYNC, O_DSYNC
  static constexpr std::uint16_t kWrites = 0x2000;
  static constexpr std::uint16_t kReads = 0x4000;
  static constexpr std::uint16_t kLibrarys = 0x8000;  // Vellum's own: not the program's to close
  static constexpr int kMaxDescriptors = 1 << 20;

  struct Open {
    Target target;
    std::uint64_t device = 0, inode = 0;
    std::size_t descriptors = 0;
    std::shared_ptr<LiveFile> live;
    atomic::Mappings mappings;  // of the live file
  };

  Files();
  static std::atomic<std::uint16_t>& mark_at(int fd) noexcept {
    return marks_[static_cast<std::size_t>(fd)];
  }
  std::uint16_t mark_of(int fd) const noexcept {
    return fd < 0 || fd >= kMaxDescriptors ? 0 : mark_at(fd).load(std::memory_order_relaxed);
  }
  std::size_t find(const struct stat& status) const;
  std::size_t target_of(int fd);  // its number; kTarget: none
  std::size_t add(const struct stat& status, std::string path, std::string branch);
  bool may_be_target(int fd, const char* path) const;
  std::size_t find(const void* address) const;
  // 0 or errno. `fd`: the descriptor for which it becomes so. Tells of errors, unless it is quiet.
  int make_live(Open& open, int fd, bool quiet = false);
  int refuse_unseen(const Open& open, int fd, const std::vector<int>& programs) const;
  void mark_librarys(const std::vector<int>& programs);
  void note_descriptor(int fd, std::size_t number, int flags);
  void let_read_only(int fd);
  void shield_standard(int fd) const;
  void close_librarys();
  void before_fork();
  void after_fork(bool child);
  void close_unused(std::size_t number);
  void note_opens();

  const Config config_;
  std::atomic<pid_t> process_;
  std::vector<std::unique_ptr<Open>> opens_;  // null: free
  std::mutex mutex_;
  std::mutex librarys_mutex_;                                        // behind mutex_
  int forking_[2] = {-1, -1};                                        // a pipe that the child closes
  std::map<int, std::pair<std::uint64_t, std::uint64_t>> librarys_;  // device and inode
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX}, highest_{0};     // of live files
  std::atomic<std::uint64_t> inodes_{0};  // a filter of those that are open
  static std::array<std::atomic<std::uint16_t>, kMaxDescriptors> marks_;
};

}  // namespace vellum::shim
