// run/files/files.hpp: the process's descriptors and mappings of files that `vellum run` was given.
// A file is live from its first opening for writing until it is no longer open or mapped; then it
// is committed, because a closed file must have the program's writes. Until the file is live, the
// kernel handles descriptors that only read; while it is live, they use its memory. When a live
// file loses its name, it is released to the kernel (files_names.cpp).
//
// A child of fork() inherits its parent's live files, and may read them.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "interfaces/mapped_io/mappings.hpp"
#include "run/files/inode_sets.hpp"
#include "run/live/live_file.hpp"
#include "run/run/config.hpp"

namespace vellum::preload {

// Prints one line that names the file; returns the error.
int complain(const std::string& path, int error, const char* what);

// The path, as the kernel resolves it, of a name in an existing directory; empty if there is no
// such directory. The name itself may be a link, or not exist.
std::string path_at(int directory, const char* path);

struct DescriptorIdentity {
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const DescriptorIdentity&, const DescriptorIdentity&) = default;
};

struct DescriptorIdentityHash {
  std::size_t operator()(const DescriptorIdentity& file) const noexcept {
    return static_cast<std::size_t>(file.inode * 0x9e3779b97f4a7c15 ^ file.device);
  }
};

class Files {
 public:
  // The process's instance, which is never destroyed.
  static Files& instance();
  // Whether there is anything to do at all.
  bool active() const noexcept { return active_; }

  // The files that `vellum run` was given. Allocates.
  const std::vector<RunTarget>& targets() {
    load();
    return config_.targets;
  }
  // Whether a path currently names one of the files.
  bool names_target(int directory, const char* path) const;
  // Whether a path may name one later: tests only its last part.
  bool may_name_target(const char* path) const;
  // After an open(2) without O_TRUNC. Returns `fd`; or -1 and errno, and `fd` is closed.
  int opened(int fd, const char* path, int flags, bool truncate);

  // The live file behind a descriptor; null if the kernel handles the descriptor. Costs one load
  // for descriptors of other files.
  std::shared_ptr<LiveFile> live(int fd);
  bool synchronous(int fd) const noexcept { return (entry_of(fd) & kSynchronous) != 0; }
  // The access modes of a descriptor that is known().
  bool reads(int fd) const noexcept { return (entry_of(fd) & kReads) != 0; }
  bool writes(int fd) const noexcept { return (entry_of(fd) & kWrites) != 0; }
  // Whether it may have O_APPEND; if not, no system call is needed.
  bool may_append(int fd) const noexcept { return (entry_of(fd) & kMayAppend) != 0; }
  void note_append(int fd) noexcept;
  bool known(int fd) const noexcept { return (entry_of(fd) & kTarget) != 0; }
  // Whether the descriptor is Vellum's own. The C library closes some of these by itself, as
  // closedir(3) does: the number may be another file's by then.
  bool librarys(int fd);
  void note_librarys(int fd, bool is);
  // Not for a child of vfork(2), whose memory is its parent's.
  void duplicated(int from, int to);
  void closed(int fd);  // call before it is closed
  // The original open file of a descriptor that the library has reopened: the program's locks
  // belong to it. -1: the descriptor was not reopened.
  int original_of(int fd);
  bool shares_memory() const noexcept;  // with a parent process, after vfork(2)
  // The first known descriptor from `fd` on; UINT_MAX if there is none.
  unsigned next_entry(unsigned fd) const noexcept;

  bool any_live() const noexcept { return highest_ != 0; }
  // Change names by `call`, as unlink(2), rename(2) and link(2) do, and update the files
  // accordingly. `call` returns 0, or -1 and errno, and so do these.
  struct Name {
    int directory;
    const char* path;
  };
  int remove_name(int directory, const char* path, const std::function<int()>& call);
  int rename(const Name& from, const Name& to, bool exchange, const std::function<int()>& call);
  int link(const Name& to, const std::function<int()>& call);

  // The live file with the device and inode of `status`; null if there is none.
  std::shared_ptr<LiveFile> live(const struct stat& status);

  // Mappings. `map` is for descriptors that are known(). It returns the address; MAP_FAILED and
  // errno; or null if the kernel has to map it.
  void* map(int fd, std::size_t length_bytes, int protection, int flags, off_t offset_bytes);
  std::shared_ptr<LiveFile> mapped_at(const void* address);
  int unmap(void* address, std::size_t length_bytes);
  int remap(void* address, std::size_t old_bytes, std::size_t new_bytes);

  // Makes `file` durable with `how`. Without Vellum, a kill would keep all earlier writes of the
  // process. Other live files that write(2) has changed are therefore committed, too, all in the
  // order of their first change by write(2). Returns the result of `how`.
  using Commit = int (LiveFile::*)();
  int commit_in_order(LiveFile& file, Commit how);
  // Call before a name that may be a watched file's is created, removed or moved: commits the
  // changes by write(2), for the same reason.
  void commit_before_name(const char* path);
  void commit_before_new_name(int directory, const char* path);  // if there is no file yet
  // At the end of the process: commits and closes.
  void close_all() noexcept;
  // Before another program replaces this one, and its memory with it: commits.
  void commit_all() noexcept;
  // For the descriptors that a new program starts with: a file without other writers is live at
  // once. A file that is open in the process that passed it down is read-only.
  void adopt_descriptors();
  // The same for a descriptor received from another process.
  void adopt_descriptor(int fd);
  // The program has opened or mapped a file that is not live.
  void note_used(int fd) noexcept;
  // After write(2) has failed: explains the failure if the descriptor is read-only for that reason.
  void explain_failure(int fd) const;

 private:
  // The recorded facts about a descriptor; 0: none.
  static constexpr std::uint32_t kTarget = 0x000f'ffff;       // 1 + its number
  static constexpr std::uint32_t kSynchronous = 0x0010'0000;  // O_SYNC, O_DSYNC
  static constexpr std::uint32_t kWrites = 0x0020'0000;
  static constexpr std::uint32_t kReads = 0x0040'0000;
  static constexpr std::uint32_t kMayAppend = 0x0080'0000;  // only the kernel knows for sure
  static constexpr std::uint32_t kLibrarys =
      0x0100'0000;  // Vellum's own: not the program's to close
  static constexpr std::uint32_t kReopened = 0x0200'0000;  // original_fds_ has the original one
  static constexpr int kMaxDescriptors = 1 << 20;

  struct Open {
    RunTarget target;
    DescriptorIdentity file;
    std::size_t descriptors = 0;
    std::shared_ptr<LiveFile> live;
    bool to_be_found = false;      // not live, under this name; committed when it is no longer used
    mapped_io::Mappings mappings;  // of the live file
  };

  Files();
  void load();
  static std::atomic<std::uint32_t>& entry_at(int fd) noexcept {
    return entries_[static_cast<std::size_t>(fd)];
  }
  static void set_entry(int fd, std::uint32_t entry) noexcept;
  std::uint32_t entry_of(int fd) const noexcept {
    return fd < 0 || fd >= kMaxDescriptors ? 0 : entry_at(fd).load(std::memory_order_relaxed);
  }
  std::size_t find(const struct stat& status) const;
  std::size_t target_of(int fd);  // its number; kTarget: none
  std::size_t add(const struct stat& status, std::string path, std::string branch);
  bool may_be_target(int fd, const char* path) const;
  std::size_t find(const void* address) const;
  // Returns 0 or errno. `fd`: the descriptor that needs it live. Reports errors unless `quiet`.
  int make_live(Open& open, int fd, bool quiet = false);
  int refuse_unseen(const Open& open, int fd) const;
  int keep_views(const Open& open) const;
  void forget(std::size_t number);
  void note_live(const LiveFile& live);
  void forget_live(Open& open);
  void note_used_before();
  void note_descriptor(int fd, std::size_t number, int flags);
  void let_read_only(int fd);
  void keep_original(int fd, int original);
  bool note_if_target(int fd);
  void make_live_or_read_only(int fd);
  void shield_standard(int fd) const;
  void close_librarys();
  void before_fork();
  void after_fork(bool child);
  void close_unused(std::size_t number);
  // Those that write(2) has changed since their last commit, in the order of the first change.
  using LiveFiles = std::vector<std::shared_ptr<LiveFile>>;
  LiveFiles written_files() const;
  LiveFiles written_among_others(const LiveFile& file) const;  // none if `file` is the only one
  static int commit_among(const LiveFiles& written, LiveFile& file, Commit how);
  void commit_written() const;
  bool watches_names() const noexcept;
  bool release(std::size_t number);
  std::vector<std::string> release_at(const std::string& path);
  void adopt_name(const std::string& path);
  void commit_as_found(const Open& open);
  bool note_descriptors(const struct stat& status, std::size_t number);
  void shield_all(std::size_t number) const;
  int reopened(const Open& open);

  const bool active_;
  Config loaded_;                             // empty until load()
  const Config& config_ = loaded_;            // the view of everything else
  std::atomic<std::uint64_t> process_;        // process_identity()
  std::vector<std::unique_ptr<Open>> opens_;  // null: free
  std::vector<std::size_t> free_;             // its free numbers
  std::unordered_map<DescriptorIdentity, std::size_t, DescriptorIdentityHash> numbers_;
  std::size_t live_ = 0;  // how many of them are live
  std::unordered_map<int, int>
      original_fds_;  // the library's descriptors of original open files, by the program's
  std::mutex mutex_;
  std::mutex librarys_mutex_;                                        // after mutex_
  int forking_[2] = {-1, -1};                                        // a pipe that the child closes
  bool any_librarys_ = false;                                        // under librarys_mutex_
  static std::array<DescriptorIdentity, kMaxDescriptors> librarys_;  // by descriptor; the same lock
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX}, highest_{0};     // of live files
  static CountedInodeSet inodes_;                                    // those that are open
  // Inodes of files that the program may use without the library's knowledge. If a file is not in
  // this set, no search of all descriptors and mappings of the process is needed.
  static InodeSet used_;
  static std::array<std::atomic<std::uint32_t>, kMaxDescriptors> entries_;
  static std::atomic<unsigned> entries_end_;  // one more than the highest that ever had one
};

}  // namespace vellum::preload
