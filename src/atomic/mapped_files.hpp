// atomic/mapped_files.hpp: the atomic files of a process that are mapped as mmap(2) maps them: by
// descriptor, several times, and found again by address.
//
// Errors are numbers of errno, with a line on standard error: the callers are programs that know
// mmap(2) only.
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

#include "atomic/mappings.hpp"

namespace vellum::atomic {

class MappedFiles {
 public:
  // The process's own. At exit(3) what is mapped still is committed, and its journals go; the
  // memory stays, as objects that are destroyed later may use it.
  static MappedFiles& instance();

  // 0 and the address, or errno. A file that is mapped already may be mapped again by a descriptor
  // that only reads.
  int map(std::size_t length_bytes, int flags, int fd, off_t offset_bytes, Tracker tracker,
          void*& address);
  // Whether an address lies in one of the files: what the rest needs. Takes no lock where there is
  // nothing of ours, like mapped(): every program's calls come here, from signal handlers, too.
  bool contains(const void* address);
  int sync(const void* address);
  int unmap(void* address, std::size_t length_bytes);
  int remap(void* address, std::size_t old_bytes, std::size_t new_bytes);

  // Whether the file behind a descriptor is mapped.
  bool mapped(int fd);
  int sync_file(int fd);
  int truncate(int fd, off_t size_bytes);
  // pread(2) and pwrite(2) of such a file go through its memory: they see what has been stored
  // there, and what they write is in the next commit. The count, or -1 and errno. For write_at() -1
  // as the offset is the end of the file.
  ssize_t read_at(int fd, void* to, std::size_t length_bytes, off_t offset_bytes);
  ssize_t write_at(int fd, const void* from, std::size_t length_bytes, off_t offset_bytes);
  // Brings to a file what a crash has left in its journal, if there is one that nobody holds.
  static void recover(const std::string& path);

 private:
  using Inode = std::pair<std::uint64_t, std::uint64_t>;  // device, number
  struct Entry {
    AtomicFile file;
    std::uint32_t owner = 0;  // base::fork_count()
    Mappings mappings;
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
  // What is looked at before the lock: a filter of the files, and where they lie.
  std::atomic<std::uint64_t> inode_filter_{0};
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX}, highest_{0};
};

// VELLUM_ATOMIC_TRACKER, or `otherwise`.
Tracker tracker_from_environment(Tracker otherwise);
// Whether VELLUM_ATOMIC_FILES names a file, by its whole path.
bool chosen_by_environment(const std::string& path);

}  // namespace vellum::atomic
