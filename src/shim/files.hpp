// shim/files.hpp: which of the process's descriptors and mappings are of files that `vellum run`
// was given.
//
// A file is live from its first opening to write until nothing of it is open or mapped any more; it
// is committed then, as what a program has written is in a file that it closes. Descriptors that
// only read are the kernel's until then, and go through the live file's memory while there is one.
// One that loses its name meanwhile is the kernel's from then on (files_names.cpp).
//
// A child of fork() has what its parent had, and may read it.
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

#include "atomic/mappings.hpp"
#include "shim/config.hpp"
#include "shim/inode_sets.hpp"
#include "shim/live_file.hpp"

namespace vellum::shim {

// One line that names the file; returns the error.
int complain(const std::string& path, int error, const char* what);

// As the kernel has it, of a name in a directory that is there; empty: it is not. The name itself
// may be a link, or not be there.
std::string path_at(int directory, const char* path);

struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct FileIdentityHash {
  std::size_t operator()(const FileIdentity& file) const noexcept {
    return static_cast<std::size_t>(file.inode * 0x9e3779b97f4a7c15 ^ file.device);
  }
};

class Files {
 public:
  // The process's own, never destroyed.
  static Files& instance();
  // Whether there is anything to do at all.
  bool active() const noexcept { return active_; }

  // What `vellum run` was given; asks for memory.
  const std::vector<Target>& targets() {
    load();
    return config_.targets;
  }
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
  // Whether it may have O_APPEND: without that nobody asks the kernel.
  bool may_append(int fd) const noexcept { return (mark_of(fd) & kMayAppend) != 0; }
  void note_append(int fd) noexcept;
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

  bool any_live() const noexcept { return highest_ != 0; }
  // What unlink(2), rename(2) and link(2) do to names, by `call`, and what follows from that for
  // the files. `call` gives 0, or -1 and errno, as these give.
  struct Name {
    int directory;
    const char* path;
  };
  int remove_name(int directory, const char* path, const std::function<int()>& call);
  int rename(const Name& from, const Name& to, bool exchange, const std::function<int()>& call);
  int link(const Name& to, const std::function<int()>& call);

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
  // The same of one that has come from another process.
  void adopt_descriptor(int fd);
  // The program has opened or mapped a file that is the kernel's.
  void note_used(int fd) noexcept;
  // After write(2) of a descriptor has failed: tells of one that may be read only for that reason.
  void explain_failure(int fd) const;

 private:
  // What is known of a descriptor: 0: nothing.
  static constexpr std::uint32_t kTarget = 0x000f'ffff;       // 1 + its number
  static constexpr std::uint32_t kSynchronous = 0x0010'0000;  // O_SYNC, O_DSYNC
  static constexpr std::uint32_t kWrites = 0x0020'0000;
  static constexpr std::uint32_t kReads = 0x0040'0000;
  static constexpr std::uint32_t kMayAppend = 0x0080'0000;  // only the kernel knows, who asks it
  static constexpr std::uint32_t kLibrarys =
      0x0100'0000;  // Vellum's own: not the program's to close
  static constexpr int kMaxDescriptors = 1 << 20;

  struct Open {
    Target target;
    FileIdentity file;
    std::size_t descriptors = 0;
    std::shared_ptr<LiveFile> live;
    bool to_be_found =
        false;  // the kernel's as yet, with this name: a commit when it is not in use
    atomic::Mappings mappings;  // of the live file
  };

  Files();
  void load();
  static std::atomic<std::uint32_t>& mark_at(int fd) noexcept {
    return marks_[static_cast<std::size_t>(fd)];
  }
  static void set_mark(int fd, std::uint32_t mark) noexcept;
  std::uint32_t mark_of(int fd) const noexcept {
    return fd < 0 || fd >= kMaxDescriptors ? 0 : mark_at(fd).load(std::memory_order_relaxed);
  }
  std::size_t find(const struct stat& status) const;
  std::size_t target_of(int fd);  // its number; kTarget: none
  std::size_t add(const struct stat& status, std::string path, std::string branch);
  bool may_be_target(int fd, const char* path) const;
  std::size_t find(const void* address) const;
  // 0 or errno. `fd`: the descriptor for which it becomes so. Tells of errors, unless it is quiet.
  int make_live(Open& open, int fd, bool quiet = false);
  int refuse_unseen(const Open& open, int fd) const;
  int keep_views(const Open& open) const;
  void forget(std::size_t number);
  void note_live(const LiveFile& live);
  void forget_live(Open& open);
  void note_used_before();
  void note_descriptor(int fd, std::size_t number, int flags);
  void let_read_only(int fd);
  bool note_if_target(int fd);
  void make_live_or_read_only(int fd);
  void shield_standard(int fd) const;
  void close_librarys();
  void before_fork();
  void after_fork(bool child);
  void close_unused(std::size_t number);
  bool watches_names() const noexcept;
  bool let_go(std::size_t number);
  std::vector<std::string> let_go_at(const std::string& path);
  void come_to(const std::string& path);
  void commit_as_found(const Open& open);
  bool note_descriptors(const struct stat& status, std::size_t number);
  void shield_all(std::size_t number) const;
  int reopened(const Open& open);

  const bool active_;
  Config loaded_;                             // empty until load()
  const Config& config_ = loaded_;            // as everything else sees it
  std::atomic<std::uint64_t> process_;        // process_identity()
  std::vector<std::unique_ptr<Open>> opens_;  // null: free
  std::vector<std::size_t> free_;             // of them
  std::unordered_map<FileIdentity, std::size_t, FileIdentityHash> numbers_;
  std::size_t live_ = 0;  // how many are
  std::mutex mutex_;
  std::mutex librarys_mutex_;                                     // behind mutex_
  int forking_[2] = {-1, -1};                                     // a pipe that the child closes
  bool any_librarys_ = false;                                     // under librarys_mutex_
  static std::array<FileIdentity, kMaxDescriptors> librarys_;     // by descriptor; the same lock
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX}, highest_{0};  // of live files
  static CountedInodeSet inodes_;                                 // those that are open
  // What the program has opened or mapped without becoming known: a file that is new here can be
  // none of them, and nobody need look through all that the process has.
  static InodeSet used_;
  static std::array<std::atomic<std::uint32_t>, kMaxDescriptors> marks_;
  static std::atomic<unsigned> marks_end_;  // behind the highest that ever was marked
};

}  // namespace vellum::shim
