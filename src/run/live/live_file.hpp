// run/live/live_file.hpp: a file that the program has open for writing.
//
// It is a region of the store whose image is the file. Reads, writes and mappings use the region's
// memory; a commit updates the file.
//
// Errors are errno values, with a line on standard error, because callers have no other channel.
//
// Threads: any thread may read, write and commit, concurrently, as with any file. A change of size
// is exclusive.
#pragma once

#include <sys/types.h>
#include <vellum/store.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "interfaces/lmdb/meta.hpp"
#include "interfaces/mapped_io/mappings.hpp"
#include "memory/kernel/fault_router.hpp"
#include "run/live/live_ranges.hpp"
#include "run/run/config.hpp"

namespace vellum::preload {

// Detects whether LMDB itself writes a file: LMDB has the lock file with the reader table open;
// other programs that write an LMDB file do not.
class LmdbLock {
 public:
  // Whether the environment of this data file is open. Searches again only after it was closed.
  bool is_open(const std::string& path);

 private:
  bool is_lock(int fd) const;

  int fd_ = -1;
  std::uint64_t device_ = 0, inode_ = 0;
};

class LiveFile : private region::FaultTarget {
 public:
  // Throws vellum::Error.
  LiveFile(const Config& config, const RunTarget& target);
  // In a child of fork() the region is not closed, because it belongs to the parent.
  ~LiveFile() override;
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }
  std::uint64_t size_bytes() const;
  bool inherited() const noexcept;                       // in a child of fork()
  bool has_left() const noexcept { return left_ >= 0; }  // leave()
  bool has_its_name() const;                             // whether its path still names the file
  // The position, in the order of all live files, of the first write(2), ftruncate(2) or similar
  // call since the last commit; 0: none. Stores to mappings do not count.
  std::uint64_t written_since() const noexcept { return written_since_; }
  // The number of files with a position.
  static std::size_t written_count() noexcept { return written_count_; }
  // Whether a kill keeps all changes since the last commit (keep()).
  bool is_kept() const noexcept { return !unkept_; }

  // Return byte counts, which are short if the program's memory ends; or -1 and errno.
  ssize_t read_at(void* to, std::size_t length_bytes, std::uint64_t offset_bytes) const;
  // `append`: writes at the current end, and sets `offset_bytes` to it.
  ssize_t write_at(const void* from, std::size_t length_bytes, std::uint64_t& offset_bytes,
                   bool append);
  // Return 0 or errno, here and below.
  int resize(std::uint64_t size_bytes);
  // Zeroes the range, up to the end of the file.
  int clear(std::uint64_t offset_bytes, std::uint64_t length_bytes);
  int commit();
  // Implements fsync(2): commit(), or nothing while a transaction of LMDB is incomplete.
  int flush();
  // Starts a commit and does not wait for it.
  int commit_soon();
  // Writes everything that the program has appended since the last commit to the file, without a
  // commit and without a flush: a kill keeps it. False: only a commit can do that, because the
  // program has changed earlier parts of the file, or the file is used in other ways, or the last
  // commit is too old.
  bool keep();
  // While the program has closed the file, others may write it: the next opening adopts that.
  void note_closed(bool closed) noexcept { closed_ = closed; }
  // Whether another program has written the file since this one has: `fd` is a descriptor of it.
  bool is_changed_by_others(int fd);
  // Whether another process waits for the branch. REQUIRES: keep() has returned true.
  bool is_asked_for();
  // Call before the program gets writable memory of the file.
  void note_mapped_writable();
  // Call after the program itself has changed the file's times.
  void note_own_change();

  // The file has lost its name: commits, releases the branch, and releases the file to the kernel.
  // `mappings` then show the file itself, at the same addresses. Later reads and writes through
  // this object use `fd`, which this object closes. On error returns errno, and nothing has
  // changed. Stores to mappings during the call may be lost; stores during msync(2) are not.
  int leave(int fd, const mapped_io::Mappings& mappings);
  // In a child of fork(2): makes a store to inherited memory print a message and raise SIGSEGV.
  void protect_inherited() noexcept;

 private:
  int refuse_inherited() const;
  int refuse_size();
  void report_other_writers();
  std::int64_t modified_ns() const;
  int commit_rest();
  void release_views() const;
  void show_file(const mapped_io::Mappings& mappings) const;
  ssize_t write_left(const void* from, std::size_t length_bytes, std::uint64_t& offset_bytes,
                     bool append) const;
  region::FaultResult on_fault(const region::Fault& fault) noexcept override;
  int set_size(std::uint64_t size_bytes);
  void drop_tail();
  int commit_with(const lmdb::MetaPages& meta);
  void commit_or_keep();
  void take_position() noexcept;
  void set_written_since(std::uint64_t position) noexcept;
  void note_written(std::uint64_t offset_bytes, std::size_t length_bytes);
  CommitReport commit_written();
  void drop_copies(const std::vector<ByteRange>& committed);

  const std::string path_, branch_;
  const std::string inherited_message_;  // prepared, as a fault handler must not allocate
  const std::uint64_t snapshot_every_;
  const std::size_t target_;  // its number in Config::targets
  const std::uint32_t born_;
  // Held to change the size; shared by readers of the size and by writers. After commit_mutex_.
  mutable std::shared_mutex size_mutex_;
  std::mutex commit_mutex_;
  const std::shared_ptr<Store> store_;
  Region region_;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_bytes_ = 0;
  std::uint64_t device_ = 0, inode_ = 0;
  std::atomic<int> left_{-1};       // a descriptor; set once, under size_mutex_
  LmdbLock lmdb_lock_;              // under commit_mutex_
  std::uint64_t last_kept_ = 0;     // sequence of the last automatic snapshot
  lmdb::MetaPages committed_meta_;  // under commit_mutex_
  std::mutex modified_mutex_;       // held from a change of the file's size until it is recorded
  std::int64_t modified_ns_ = 0;    // time of the library's last change; 0: one may be in progress
  bool told_of_other_writers_ = false;
  std::atomic<bool> told_of_size_{false};
  // The ranges written since the last commit. They are complete until the program first gets
  // writable memory of the file, unless `anywhere_` is set.
  std::atomic<bool> mapped_writable_{false};
  std::mutex written_mutex_;
  std::vector<ByteRange> written_;
  bool anywhere_ = false;
  std::uint64_t lowest_written_ = UINT64_MAX;  // the lowest offset written since the last keep()
  std::atomic<bool> closed_{false};
  std::atomic<bool> unkept_{false};  // changes since the last commit and the last keep()
  std::chrono::steady_clock::time_point kept_since_{};  // first keep() since the last commit
  std::atomic<std::uint64_t> written_since_{0};
  static std::atomic<std::uint64_t> last_position_;
  static std::atomic<std::size_t> written_count_;
};

// The address ranges of all live files.
LiveRanges& live_ranges() noexcept;

// Runs `body` and reports an exception in one line. Returns 0 or errno.
int reported(const std::string& path, const std::function<void()>& body) noexcept;

}  // namespace vellum::preload
