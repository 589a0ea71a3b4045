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
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "shim/config.hpp"
#include "shim/lmdb_meta.hpp"

namespace vellum::shim {

class LiveFile {
 public:
  // Throws vellum::Error.
  LiveFile(const Config& config, const Target& target);
  // In a child of fork() the region stays as it is: the parent's.
  ~LiveFile();
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }
  std::uint64_t size_bytes() const;
  bool inherited() const noexcept;  // by a child of fork()

  // Counts of bytes, or -1 and errno.
  ssize_t read_at(void* to, std::size_t length_bytes, std::uint64_t offset_bytes) const;
  // `append`: at the end, wherever that is.
  ssize_t write_at(const void* from, std::size_t length_bytes, std::uint64_t offset_bytes,
                   bool append);
  // 0 or errno.
  int resize(std::uint64_t size_bytes);
  int commit();
  // What fsync(2) is to do: commit(), or nothing where a transaction of LMDB's is not complete.
  int flush();
  // One that is on its way when this returns.
  int commit_soon();
  // Before the program gets memory of the file that it may store to.
  void note_mapped_writable();

 private:
  int refuse_inherited() const;
  void tell_of_other_writers();
  void note_own_change();
  int set_size(std::uint64_t size_bytes);
  void drop_tail();
  int commit_with(const LmdbMeta& meta);
  void commit_or_keep();
  void note_written(std::uint64_t offset_bytes, std::size_t length_bytes);
  CommitReport commit_written();
  void drop_copies(const std::vector<ByteRange>& committed);

  const std::string path_, branch_;
  const std::uint64_t snapshot_every_;
  const std::uint32_t born_;
  // Held to change the size; shared by who relies on it, and by who writes. After commit_mutex_.
  mutable std::shared_mutex size_mutex_;
  std::mutex commit_mutex_;
  Region region_;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_bytes_ = 0;
  std::uint64_t last_kept_ = 0;   // sequence of the last snapshot by snapshot_every_
  LmdbMeta committed_meta_;       // under commit_mutex_
  std::mutex modified_mutex_;     // held to change the file's size until that is noted
  std::int64_t modified_ns_ = 0;  // when the library changed the file last; 0: may be at it
  bool told_of_other_writers_ = false;
  // Where the file was written since the last commit. As long as the program has never had memory
  // of it to store to, that is all of it, unless `anywhere_`.
  std::atomic<bool> mapped_writable_{false};
  std::mutex written_mutex_;
  std::vector<ByteRange> written_;
  bool anywhere_ = false;
};

// Runs it, and tells of an exception in one line: 0 or errno.
int reported(const std::string& path, const std::function<void()>& body) noexcept;

}  // namespace vellum::shim
