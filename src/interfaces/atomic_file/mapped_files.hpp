// interfaces/atomic_file/mapped_files.hpp: the atomic files that a process maps as by mmap(2): by
// descriptor, several times, and found by address.
//
// Errors are errno values, with a line on standard error: the callers are programs written for
// mmap(2).
//
// Threads: any; calls run one at a time, except where a call takes no lock.
#pragma once

#include <sys/types.h>
#include <vellum/atomic_file.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "interfaces/mapped_io/mappings.hpp"

namespace vellum::atomic_file {

class MappedFiles {
 public:
  // The process's instance. exit(3) commits the files that are still mapped and removes their
  // journals. The memory stays mapped, since objects that are destroyed later may use it.
  static MappedFiles& instance();

  // Returns 0 and the address, or an errno value. A read-only descriptor may map a file again that
  // is already mapped.
  int map(std::size_t length_bytes, int flags, int fd, off_t offset_bytes, Tracker tracker,
          void*& address);
  // Whether an address is in one of the files, as the calls below require. Like mapped(), it takes
  // no lock where no file can match: the calls of every program reach it, even in signal handlers.
  bool contains(const void* address);
  int sync(const void* address);
  int unmap(void* address, std::size_t length_bytes);
  int remap(void* address, std::size_t old_bytes, std::size_t new_bytes);

  // Whether the file behind a descriptor is mapped.
  bool mapped(int fd);
  int sync_file(int fd);
  // Commits all files of this process; prints errors.
  void sync_all();
  int truncate(int fd, off_t size_bytes);
  // pread(2) and pwrite(2) of a mapped file use its memory: they see the stores to it, and their
  // writes are in the next commit. They return the count, or -1 and errno.
  // `append`: writes at the current end, and sets `offset_bytes` to it.
  ssize_t read_at(int fd, void* to, std::size_t length_bytes, std::uint64_t offset_bytes);
  ssize_t write_at(int fd, const void* from, std::size_t length_bytes, std::uint64_t& offset_bytes,
                   bool append);
  // Applies the journal of a crash to a file, if there is one that no process has locked.
  static void recover(const std::string& path);

 private:
  using Inode = std::pair<std::uint64_t, std::uint64_t>;  // device, number
  struct Entry {
    AtomicFile file;
    std::uint32_t owner = 0;  // base::fork_count()
    mapped_io::Mappings mappings;
  };
  using Entries = std::map<Inode, Entry>;

  MappedFiles() = default;
  Entries::iterator find(const void* address);
  Entries::iterator find(int fd);
  int commit(Entry& entry);
  int close(Entries::iterator entry);
  void close_all() noexcept;
  void note_entries();

  std::mutex mutex_;
  Entries entries_;
  // Read before the lock: a filter of the files, and the range of their addresses.
  std::atomic<std::uint64_t> inode_filter_{0};
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX}, highest_{0};
};

// VELLUM_ATOMIC_TRACKER, or `otherwise`.
Tracker tracker_from_environment(Tracker otherwise);
// Whether VELLUM_ATOMIC_FILES names a file, by its whole path.
bool chosen_by_environment(const std::string& path);

}  // namespace vellum::atomic_file
