// vellum/atomic_file.hpp: a plain file in memory whose msync() is failure-atomic.
//
//   auto file = vellum::AtomicFile::open_or_create("/data/index", 1 << 30);
//   auto* root = static_cast<Root*>(file.data());
//   root->count += 1;
//   file.commit();          // durable, all or nothing
//
// Guarantees:
//  - After a crash at any time, opening (or AtomicFile::recover(), or `vellum recover FILE`) gives
//    the file as of the last commit() that returned, or of one that was in progress, whole.
//  - While the file is open, and after a crash until it is recovered, committed data that it does
//    not yet have is in FILE.vellum-journal. A reader of the file meanwhile finds some or all of
//    its bytes old. After close() only the plain file remains, without a journal.
//  - No versions are kept; a Region keeps versions (vellum/region.hpp).
//
// How: the mapping is private (mmap(2), MAP_PRIVATE), so the kernel never writes it to the file by
// itself, as it does with a shared mapping. commit() appends the stores to the journal and flushes
// it: one fdatasync(2) of a file whose blocks are allocated. When the journal is full, its content
// is written to the file (a checkpoint). Failure-atomic msync is an idea of Park, Kelly and Shen
// (EuroSys 2013); in userspace, with stores tracked by the compiler, of Mahar et al., Snapshot
// (ICCD 2023).
//
// Memory: a written page stays in memory until close(). With the page tracker it is held twice.
//
// Threads: commit() may run concurrently with threads that store. It includes every store that
// happened before the call; a store during the call is in this commit or the next. Member
// functions, close() included, run one at a time; a call after close() is invalid_argument. While
// an AtomicFile is destroyed or moved, no other thread may use it.
//
// fork(2): a child has a copy of the memory, and its stores are its own. It must not commit, resize
// or checkpoint (unsupported).
#ifndef VELLUM_ATOMIC_FILE_HPP
#define VELLUM_ATOMIC_FILE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <vellum/error.hpp>
#include <vellum/tracker.hpp>

namespace vellum {

// The medium of the journal and the file.
enum class Medium {
  automatic,          // persistent_memory when the file is in some, else disk
  disk,               // read and written by system calls, flushed by fdatasync(2)
  persistent_memory,  // mapped, written with non-temporal stores, flushed by fences: a commit makes
                      // no system call. For files on a DAX file system. For tests,
                      // PMEM_IS_PMEM_FORCE=1 accepts any file, which is correct only on tmpfs
                      // (libpmem(7)).
};

struct AtomicFileOptions {
  Tracker tracker = Tracker::pages;
  Medium medium = Medium::automatic;
  // Address space to reserve, so that resize() works in place. 0: the larger of 4 times the file
  // and 64 GiB, or less where the process is limited (ulimit -v, -d, -f).
  std::uint64_t capacity_bytes = 0;
  // The address of the mapping: a multiple of 4 GiB, at least 0x200000000000 and below
  // 0x300000000000. 0: any free address; a process's first file is mapped at 0x200000000000.
  std::uint64_t base_address = 0;
  // The amount of committed data that triggers a checkpoint. The journal takes at most that much
  // space in addition to the file, or the size of one larger commit; on persistent memory it takes
  // all of that space at once. At least 64 KiB.
  std::uint64_t journal_bytes = 64ULL << 20;
  // Compare marks with the changed bytes at each commit: an unmarked store is Errc::corrupted, with
  // the page's number and address, before anything is written. For tests: it costs time, and memory
  // of the file's size. VELLUM_VERIFY_CARDS=1 has the same effect.
  bool verify_cards = false;
};

struct AtomicCommitReport {
  std::uint64_t sequence = 0;       // commits since the file was opened
  std::uint64_t pages_stored = 0;   // with stores
  std::uint64_t cards_stored = 0;   // 64-byte lines
  std::uint64_t bytes_written = 0;  // to the journal
  bool checkpointed = false;        // the journal was full, and was written to the file
};

struct RecoveryOptions {
  // File and journal were copied, or moved to another file system, together. Without this option, a
  // journal of another file is Errc::corrupted, because it would corrupt this one.
  bool copied = false;
  // For a corrupted journal: apply the commits before the damage to the file, and keep the journal
  // under another name. Without this option, a corrupted journal is Errc::corrupted, and nothing is
  // changed.
  bool corrupted = false;
};

struct RecoveryReport {
  bool journal = false;       // there was one
  std::uint64_t commits = 0;  // found whole in the journal, and now in the file
  std::uint64_t bytes = 0;    // of the file, changed by them
  // For a corrupted journal; empty when it was whole.
  std::string damage;              // a description, with the position
  std::string kept_as;             // its path now
  std::uint64_t commits_lost = 0;  // durable ones after the damage, as far as the journal shows
};

class AtomicFile {
 public:
  AtomicFile() noexcept;  // no file: every call but valid() is invalid_argument
  ~AtomicFile();          // close(), errors swallowed
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) noexcept;

  // Opens a file, after recovering it. open_or_create() creates a missing file, of `size_bytes`
  // zeros. Errors: not_found; busy: another AtomicFile, in any process, has it open (flock(2));
  // invalid_argument: not a regular file; corrupted, naming the journal: it is no journal, or
  // belongs to another file; unsupported: an option cannot be met here.
  [[nodiscard]] static AtomicFile open(const std::string& path,
                                       const AtomicFileOptions& options = {});
  [[nodiscard]] static AtomicFile open_or_create(const std::string& path, std::uint64_t size_bytes,
                                                 const AtomicFileOptions& options = {});
  // Restores the file to its last commit, and removes the journal. Without a journal, no error.
  static RecoveryReport recover(const std::string& path, const RecoveryOptions& options = {});

  bool valid() const noexcept;
  const std::string& path() const;
  void* data() const;
  std::uint64_t size_bytes() const;  // of the file: any number
  std::uint64_t capacity_bytes() const;
  Tracker tracker() const;
  Medium medium() const;  // never automatic

  // Makes everything stored since the last commit durable, in one step. no_space, io: the commit
  // has not happened; memory is unchanged, and a later commit() includes everything. poisoned: a
  // flush failed, now or earlier; open the file again.
  AtomicCommitReport commit();

  // Makes the file larger, by zeros: durable at the latest with the next commit(). Or cuts it:
  // durable at once, as a commit of only the size; uncommitted stores below the new size stay
  // uncommitted. invalid_argument beyond capacity_bytes().
  void resize(std::uint64_t size_bytes);

  // Writes the committed data to the file, and empties the journal. Costs nothing when it is empty.
  void checkpoint();

  // Unmaps, checkpoints, removes the journal. Uncommitted stores are lost.
  void close();
  // The same, but the memory stays mapped, unchanged, until the process ends: for exit(3), where
  // other code may still read it. The next file that is opened gets another address.
  void close_but_leave_mapped();

 private:
  struct Impl;  // src/interfaces/atomic_file/atomic_file.cpp
  explicit AtomicFile(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;
};

}  // namespace vellum

#endif  // VELLUM_ATOMIC_FILE_HPP
