// shim/live_file.hpp: a file that the program has open to write: a region of the store, whose image
// the file is. Reading, writing and mapping are of the region's memory; a commit makes the file
// follow.
//
// Errors are numbers of errno, with a line on standard error: the callers know nothing else.
//
// Threads: reads, writes and commits from any, beside each other, as of a file; the size changes
// alone.
#pragma once

#include <sys/types.h>
#include <vellum/store.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "atomic/mappings.hpp"
#include "region/kernel/fault_router.hpp"
#include "shim/config.hpp"
#include "shim/live_ranges.hpp"
#include "shim/lmdb_lock.hpp"
#include "shim/lmdb_meta.hpp"

namespace vellum::shim {

class LiveFile : private region::FaultTarget {
 public:
  // Throws vellum::Error.
  LiveFile(const Config& config, const Target& target);
  // In a child of fork() the region stays as it is: the parent's.
  ~LiveFile() override;
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }
  std::uint64_t size_bytes() const;
  bool inherited() const noexcept;  // by a child of fork()

  // Counts of bytes, fewer where the program's memory ends before; or -1 and errno.
  ssize_t read_at(void* to, std::size_t length_bytes, std::uint64_t offset_bytes) const;
  // `append`: at the end, wherever that is, which `offset_bytes` is then set to.
  ssize_t write_at(const void* from, std::size_t length_bytes, std::uint64_t& offset_bytes,
                   bool append);
  // 0 or errno.
  int resize(std::uint64_t size_bytes);
  // Zeros, as far as the file goes.
  int clear(std::uint64_t offset_bytes, std::uint64_t length_bytes);
  int commit();
  // What fsync(2) is to do: commit(), or nothing where a transaction of LMDB's is not complete.
  int flush();
  // One that is on its way when this returns.
  int commit_soon();
  // Before the program gets memory of the file that it may store to.
  void note_mapped_writable();
  // The program itself has changed the file's times.
  void note_own_change();

  // The file has lost its name: commits, gives the branch back, and leaves the file to the kernel.
  // `mappings` show the file itself then, at the same addresses. What other threads read and write
  // by this object from here on, they do by `fd`, which is this object's to close. 0 or errno: then
  // all is as before. Stores to mappings meanwhile may be lost, as beside msync(2) they are not.
  int leave(int fd, const atomic::Mappings& mappings);
  // In a child of fork(2): who stores to what was mapped is told, and killed by SIGSEGV.
  void protect_inherited() noexcept;

 private:
  int refuse_inherited() const;
  int refuse_size();
  void tell_of_other_writers();
  std::int64_t modified_ns() const;
  int commit_rest();
  void release_views() const;
  void show_file(const atomic::Mappings& mappings) const;
  ssize_t write_left(const void* from, std::size_t length_bytes, std::uint64_t& offset_bytes,
                     bool append) const;
  region::FaultResult on_fault(const region::Fault& fault) noexcept override;
  int set_size(std::uint64_t size_bytes);
  void drop_tail();
  int commit_with(const LmdbMeta& meta);
  void commit_or_keep();
  void note_written(std::uint64_t offset_bytes, std::size_t length_bytes);
  CommitReport commit_written();
  void drop_copies(const std::vector<ByteRange>& committed);

  const std::string path_, branch_;
  const std::string inherited_message_;  // ready, as a fault handler has no memory
  const std::uint64_t snapshot_every_;
  const std::size_t target_;  // its number in Config::targets
  const std::uint32_t born_;
  // Held to change the size; shared by who relies on it, and by who writes. After commit_mutex_.
  mutable std::shared_mutex size_mutex_;
  std::mutex commit_mutex_;
  const std::shared_ptr<Store> store_;
  Region region_;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_bytes_ = 0;
  std::uint64_t device_ = 0, inode_ = 0;
  std::atomic<int> left_{-1};     // a descriptor; set under size_mutex_, once
  LmdbLock lmdb_lock_;            // under commit_mutex_
  std::uint64_t last_kept_ = 0;   // sequence of the last snapshot by snapshot_every_
  LmdbMeta committed_meta_;       // under commit_mutex_
  std::mutex modified_mutex_;     // held to change the file's size until that is noted
  std::int64_t modified_ns_ = 0;  // when the library changed the file last; 0: may be at it
  bool told_of_other_writers_ = false;
  std::atomic<bool> told_of_size_{false};
  // Where the file was written since the last commit. As long as the program has never had memory
  // of it to store to, that is all of it, unless `anywhere_`.
  std::atomic<bool> mapped_writable_{false};
  std::mutex written_mutex_;
  std::vector<ByteRange> written_;
  bool anywhere_ = false;
};

// Of all live files.
LiveRanges& live_ranges() noexcept;

// Runs it, and tells of an exception in one line: 0 or errno.
int reported(const std::string& path, const std::function<void()>& body) noexcept;

}  // namespace vellum::shim
