// run/files/file_states.hpp: how a watched file becomes live, is committed, and is released or
// closed.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "run/files/open_files.hpp"
#include "run/files/own_descriptors.hpp"
#include "run/live/live_file.hpp"
#include "run/run/config.hpp"

namespace vellum::preload {

// Makes the kernel refuse writes to this descriptor.
void reopen_read_only(int fd);
// The C library writes its standard streams without the intercepted write(2). They get an error
// instead of bypassing the live file's memory.
void shield_standard(int fd);

class FileStates {
 public:
  // load() calls `register_fork_handlers`.
  FileStates(bool active, void (*register_fork_handlers)());

  // REQUIRES: a watched file is about to be opened: from now on allocation is allowed. The
  // program's allocator has already registered for fork(2), so its locks are taken after these.
  void load();
  const Config& config() const noexcept { return config_; }  // empty until load()
  bool shares_memory() const noexcept;  // with a parent process, after vfork(2)
  void note_process() noexcept;         // in a child of fork(2)
  // Whether changes of names concern this process's files.
  bool watches_names() const noexcept;

  // Before OwnDescriptors' lock.
  std::mutex& mutex() noexcept { return mutex_; }
  OwnDescriptors& own_descriptors() noexcept { return own_descriptors_; }
  // The state of the files; REQUIRES: mutex(), where a function does not state otherwise.
  OpenFiles& files() noexcept { return files_; }

  // Makes `file` durable with `how`. Without Vellum, a kill would keep all earlier writes of the
  // process. Other live files that write(2) has changed are therefore committed, too, all in the
  // order of their first change by write(2). Returns the result of `how`. Takes mutex().
  using Commit = int (LiveFile::*)();
  int commit_in_order(LiveFile& file, Commit how);

  // REQUIRES of all others: mutex().
  // The number of the descriptor's file; OpenFiles::kNone: it is no target.
  std::size_t target_of(int fd);
  std::size_t add(const struct stat& status, const std::string& path, const std::string& branch);
  void note_descriptor(int fd, std::size_t number, int flags);
  // Returns 0 or errno. `fd`: the descriptor that needs it live. Reports errors unless `quiet`.
  int make_live(OpenFile& open, int fd, bool quiet = false);
  // If the program has only appended to the file, it is *kept*: its bytes are in the file, and it
  // stays live. It is committed and closed by settle(), at the latest a tenth of a second later,
  // unless the program opens it again.
  void close_unused(std::size_t number);
  // Commits and closes the kept files; in order, with the files that were changed before them. If a
  // commit fails, that file stays kept.
  void settle();
  // Without the lock.
  bool any_kept() const noexcept { return kept_ != 0; }
  // In a child of fork(2).
  void forget_kept() noexcept;
  // Gives the file to the kernel, which handles its descriptors again. False: nothing has changed.
  bool release(std::size_t number);
  // Commits a file that is not live.
  void commit_as_found(const OpenFile& open);
  // Commit, and close the kept files.
  void commit_written();
  void commit_all();

 private:
  bool keep(OpenFile& open, const LiveFiles& others);
  void note_used(OpenFile& open) noexcept;
  void remove(std::size_t number);
  static bool is_parents_kept(const OpenFile& open) noexcept;
  void close_kept();
  void release_kept(const std::string& branch);
  bool is_asked_for();
  bool start_settling();
  void settle_later();
  // An error of another file is printed; its next commit retries.
  static int commit_among(const LiveFiles& written, LiveFile& file, Commit how);

  const bool active_;
  void (*const register_fork_handlers_)();
  Config config_;
  std::atomic<std::uint64_t> process_;  // process_identity()
  OpenFiles files_;
  OwnDescriptors own_descriptors_;
  std::mutex mutex_;
  std::atomic<std::size_t> kept_{0};  // the number of kept files
  bool settling_ = false;             // a thread runs settle_later()
  std::chrono::steady_clock::time_point settle_at_{};
};

}  // namespace vellum::preload
