// vellum/atomic_file.hpp: a plain file in memory whose msync() is failure-atomic.
//
//   auto file = vellum::AtomicFile::open_or_create("/data/index", 1 << 30);
//   auto* root = static_cast<Root*>(file.data());
//   root->count += 1;
//   file.commit();          // durable, all or nothing
//
// What holds:
//  - After a crash at any moment, opening (or AtomicFile::recover(), or `vellum recover FILE`)
//  leaves
//    the file as the last commit() that returned left it, or one that was in progress, whole.
//  - While it is open, and after a crash until it is recovered, what commits have stored and the
//    file does not yet have lies beside it, in FILE.vellum-journal: who reads the file meanwhile
//    reads old bytes, or some of them old. close() leaves the plain file alone, without a journal.
//  - No versions are kept: that is what a Region is for (vellum/region.hpp).
//
// How: the mapping is private (mmap(2), MAP_PRIVATE), so the kernel writes none of it to the file
// at a time of its own choosing, as it does with a shared one. commit() appends what has been
// stored to the journal and flushes that: one fdatasync(2) of a file whose blocks are allocated.
// When the journal is full, its content goes to the file (a checkpoint). Failure-atomic msync as an
// idea: Park, Kelly and Shen (EuroSys 2013); in userspace, with stores tracked by the compiler:
// Mahar et al., Snapshot (ICCD 2023).
//
// Memory: a page that has been written stays in memory until close(). With the page tracker it is
// held twice.
//
// Threads: commit() may be called beside threads that store: a store that happened before the call
// is in, one that runs during it is in this commit or the next. One member function at a time, they
// take turns: also close(), and one that comes after it is invalid_argument. Only to destroy or to
// move an AtomicFile no other thread may use it.
//
// fork(): a child has the memory as it was, and must not call anything here; its stores are its
// own.
#ifndef VELLUM_ATOMIC_FILE_HPP
#define VELLUM_ATOMIC_FILE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <vellum/error.hpp>
#include <vellum/tracker.hpp>

namespace vellum {

// Where the journal and the file are.
enum class Medium {
  automatic,          // persistent_memory when the file is in some, else disk
  disk,               // read and written by system calls, flushed by fdatasync(2)
  persistent_memory,  // mapped, written with non-temporal stores, flushed by fences: no system call
                      // a commit. Memory of a DAX file system; for tests, PMEM_IS_PMEM_FORCE=1
                      // makes any file some, which is honest only on tmpfs (libpmem(7)).
};

struct AtomicFileOptions {
  Tracker tracker = Tracker::pages;
  Medium medium = Medium::automatic;
  // Address space to reserve, so that resize() works in place. 0: the larger of 4 times the file
  // and 64 GiB.
  std::uint64_t capacity_bytes = 0;
  // Where the file is mapped: a multiple of 4 GiB from 0x200000000000 on, below 0x300000000000. 0:
  // where there is room: the first file of a process at 0x200000000000.
  std::uint64_t base_address = 0;
  // How much may be committed before it has to go to the file. The journal takes that much space
  // beside the file, at most; on persistent memory at once. At least 64 KiB.
  std::uint64_t journal_bytes = 64ULL << 20;
  // Compare what was marked with what has changed, at each commit: a store that nobody marked is
  // Errc::damaged, with the page's number and address, before anything is written. For tests: it
  // costs time and memory of the file's size. VELLUM_VERIFY_CARDS=1 says the same.
  bool verify_cards = false;
};

struct AtomicCommitReport {
  std::uint64_t sequence = 0;       // commits since the file was opened
  std::uint64_t pages_stored = 0;   // with stores
  std::uint64_t cards_stored = 0;   // 64-byte lines
  std::uint64_t bytes_written = 0;  // to the journal
  bool checkpointed = false;        // the journal was full, and went to the file
};

struct RecoveryOptions {
  // File and journal were copied, or moved to another file system, together. Without it a journal
  // that was made for another file is Errc::damaged, as it would spoil this one.
  bool copied = false;
  // Of a damaged journal, bring the commits before the damage to the file, and keep the journal
  // under another name. Without it a damaged journal is Errc::damaged, and nothing is done.
  bool damaged = false;
};

struct RecoveryReport {
  bool journal = false;       // there was one
  std::uint64_t commits = 0;  // found whole in the journal, and now in the file
  std::uint64_t bytes = 0;    // of the file, that they changed
  // Of a damaged journal; empty when it was whole.
  std::string damage;              // what is wrong with it, and where
  std::string kept_as;             // its path now
  std::uint64_t commits_lost = 0;  // durable ones behind the damage, as far as the journal tells
};

class AtomicFile {
 public:
  AtomicFile() noexcept;  // no file: every call but valid() is invalid_argument
  ~AtomicFile();          // close(), errors swallowed
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) noexcept;

  // Opens a file, after recovering it. The second makes it, of that many zeros, when it is not
  // there. Errors: not_found; busy when someone else has it open so (flock(2)); invalid_argument
  // for what is not a regular file; damaged, naming the journal, when that is not one, or is of
  // another file; unsupported where what the options ask for is not to be had.
  static AtomicFile open(const std::string& path, const AtomicFileOptions& options = {});
  static AtomicFile open_or_create(const std::string& path, std::uint64_t size_bytes,
                                   const AtomicFileOptions& options = {});
  // Makes the file what its last commit left, and removes the journal. Nothing to do is no error.
  static RecoveryReport recover(const std::string& path, const RecoveryOptions& options = {});

  bool valid() const noexcept;
  const std::string& path() const;
  void* data() const;
  std::uint64_t size_bytes() const;  // of the file: any number
  std::uint64_t capacity_bytes() const;
  Tracker tracker() const;
  Medium medium() const;  // never automatic

  // Makes everything stored since the last commit durable, as one step. no_space, io: it has not
  // happened; memory is as it was, and a later commit() takes everything along. poisoned: a flush
  // failed, now or earlier; open the file again.
  AtomicCommitReport commit();

  // Makes the file larger, by zeros: for sure with the next commit(). Or cuts it: durable at once,
  // a commit of the size alone; what was stored below it and not committed stays so.
  // invalid_argument beyond capacity_bytes().
  void resize(std::uint64_t size_bytes);

  // Brings what was committed to the file, and empties the journal. Costs nothing when it is empty.
  void checkpoint();

  // Unmaps, checkpoints, removes the journal. What was not committed is lost.
  void close();
  // The same, but the memory stays mapped, as it is, until the process ends: for exit(3), where
  // others may still look at it. The next file that is opened lies elsewhere.
  void close_but_leave_mapped();

  struct Impl;  // src/atomic/atomic_file.cpp

 private:
  explicit AtomicFile(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;
};

}  // namespace vellum

#endif  // VELLUM_ATOMIC_FILE_HPP
