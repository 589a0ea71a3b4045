// mount/writable_file.hpp: a branch that programs write as a file; its fsync(2) is a commit. The
// kernel sends each write(2) before it returns, and stores to mappings no later than with fsync(2)
// or msync(2). Received data is in the region's memory, and in the store after the next commit.
// Threads: all calls from any thread. A commit contains each write() completely or not at all.
#pragma once

#include <vellum/store.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>

namespace vellum::mount {

class WritableFile {
 public:
  // Takes the branch's lock; creates the branch, with an empty file, if it does not exist.
  // Errc::busy: it has a writer; unsupported: it is a datastore.
  WritableFile(Store store, const std::string& branch);
  WritableFile(const WritableFile&) = delete;
  WritableFile& operator=(const WritableFile&) = delete;

  const std::string& branch() const noexcept { return branch_; }
  std::uint64_t capacity_bytes() const noexcept { return region_.capacity_bytes(); }
  std::uint64_t size_bytes() const;
  // The time of the last change; that of the last commit, if nothing has changed since mounting.
  std::int64_t changed_ns() const noexcept { return changed_ns_; }
  void set_changed_ns(std::int64_t time_ns) noexcept { changed_ns_ = time_ns; }

  // Returns the number of bytes from `at` on, at most those of `out`. Errc::corrupted, io.
  std::size_t read(std::uint64_t at, std::span<std::byte> out) const;
  // The file grows if needed. REQUIRES: the end is within capacity_bytes().
  void write(std::uint64_t at, std::span<const std::byte> bytes);
  // Writes the part of the bytes that is inside the file: pages of a mapping that the kernel writes
  // back.
  void write_back(std::uint64_t at, std::span<const std::byte> bytes);
  // REQUIRES: at most capacity_bytes(). Bytes that a growing file regains are zero.
  void resize(std::uint64_t bytes);

  // Returns when all writes before the call are durable. After an error they are still in memory,
  // and the next commit includes them. Errc::no_space, io; poisoned: the branch has to be mounted
  // again.
  void commit();
  // Commits, and releases the branch.
  void close();

 private:
  void store_bytes(std::uint64_t at, std::span<const std::byte> bytes);
  void set_size(std::uint64_t bytes);
  void note_change() noexcept;

  Store store_;
  const std::string branch_;
  Region region_;
  // Shared: reads and writes within the file's size. Exclusive: changes of the size, and a commit
  // while it collects its pages.
  mutable std::shared_mutex mutex_;
  std::mutex commit_mutex_;  // before mutex_
  std::atomic<std::uint64_t> changes_{0};
  std::uint64_t committed_ = 0;  // changes_ as of the last commit; under commit_mutex_
  std::atomic<std::int64_t> changed_ns_{0};
};

}  // namespace vellum::mount
