// vellum/region.hpp: plain memory that is durable, failure-atomic and versioned.
//
//   auto store  = vellum::Store::open_or_create("/data/s");
//   auto region = store.open_or_create_region("main", 1 << 30);
//   auto& count = region.root<std::uint64_t>();   // plain memory, zero at first
//   ++count;
//   region.commit();                  // durable, all or nothing
//   region.snapshot("first");         // kept until removed, at the cost of the changes
//
// After a crash, opening gives the state of the last commit() that returned, or of a commit() that
// was in progress, whole; never a mix.
//
// COST. The first touch of a page loads it from the store, verified and decompressed. After that,
// reads and writes run at the speed of memory. The first write to a page since the last commit
// costs about 1 us; later writes cost nothing. A page takes its size once in memory when it is
// read, and twice when it is written: the program's copy, and the committed content (the base
// copy), from which commit() computes the difference. Half a second after the last commit, and
// while commits record much new data, a library thread frees the second copies of pages that equal
// the last commit; the next write to such pages costs about 2 us each. A region may be larger than
// memory: beyond RegionOptions::memory_limit_bytes, pages are evicted (dirty ones to the spill
// file) and loaded again by the next touch. Dirty pages of an encrypted store are never written to a
// spill file: what a program changes between two commits has to fit into memory.
//
// THREADS. Member functions may be called from any thread. While a Region is destroyed or moved, no
// other thread may use it.
//  - Loads and stores need no more care than in plain memory. They may run during every call except
//    rollback() and checkout().
//  - Calls that change the region run one at a time: commit(), snapshot(), their variants,
//    drop_copies(), rollback(), checkout(), begin(), grow(), resize_file(), the calls of a
//    Transaction, and close(). Each waits for the one in progress, and for an asynchronous commit.
//  - All other calls run concurrently with these and with each other. Only close() waits for them.
//  - A commit includes every store that happened before the call. A store during the call is in
//    this commit or in the next one; each aligned 8 bytes are whole. For a consistent state of more
//    than 8 bytes, commit while no thread writes.
//
// ERRORS are vellum::Error. Every call that can throw throws Errc::invalid_argument for a Region
// that is closed or was never opened, and in a child of fork(2). Calls that change the region,
// except close(), throw read_only when it was opened to read; those that commit, roll back or begin
// throw busy while a transaction is open.
//
// POISONED. After a flush (fdatasync(2)) that fails, the content of the medium is unknown: the
// kernel may have dropped the data, and a second flush would report success (Rebello et al., "Can
// Applications Recover from fsync Failures?", ATC 2020). The call that flushed throws io, or
// poisoned; every later commit of the branch throws poisoned. The memory keeps its content, loads
// and stores go on, and rollback() still restores the last commit that returned. Close the region
// and open the branch again: it has the last commit that returned, or the one that failed, whole.
// Other branches and readers are not affected. Two more cases are poisoned: rollback() names them.
//
// DIFFERENCES from plain memory:
//  - A system call on a page that is not in memory fails with EFAULT. So may one that writes to a
//    page whose second copy is being freed, or is unwritten since a commit (before Linux 6.7): pin().
//  - The first region installs handlers for SIGBUS and SIGSEGV (sigaction(2)). A handler that the
//    program installs later must call the previous one for a fault that is not its own.
//  - A page that cannot be read back is never delivered as data: the fault handler prints a line on
//    standard error, and the process gets SIGBUS. pin() or prefetch() beforehand throw instead.
//  - A child of fork(2) does not have the memory (madvise(2), MADV_DONTFORK): a touch is a SIGSEGV.
//    Handles may be queried and destroyed there, which changes nothing for the parent. A child does
//    not hold the branch's lock.
//
// docs/guides/regions.md has the details, also for ThreadSanitizer and for stores that are moved.
// Options are in vellum/region_options.hpp, containers in vellum/heap.hpp, and memory that is a
// plain file in vellum/mapped.hpp.
#ifndef VELLUM_REGION_HPP
#define VELLUM_REGION_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <vellum/byte_range.hpp>
#include <vellum/error.hpp>
#include <vellum/region_options.hpp>

namespace vellum {

namespace region {
struct RegionAccess;  // the library's own access to a region's implementation
}

class ConstHeap;
class Pin;
class Transaction;

// How a program will use a range: see Region::advise(), and madvise(2) for the idea.
enum class Advice : unsigned char {
  normal,      // reading in order is detected, and read ahead
  sequential,  // read in order
  random,      // not read in order
  will_need,   // used soon
  dont_need,   // not used soon
};

// The result of a commit. Times are wall-clock times of its stages, in order; together they are
// total_time.
struct CommitReport {
  std::uint64_t sequence = 0;             // of the version that is now the head
  std::uint64_t pages_dirty = 0;          // found by the tracker
  std::uint64_t pages_changed = 0;        // of these, pages whose bytes differ from the last commit
  std::uint64_t bytes_written = 0;        // to journal and packs
  bool checkpointed = false;              // written to packs, with the journal's earlier commits
  std::chrono::nanoseconds scan_time{0};  // dirty pages are found and write-protected again
  std::chrono::nanoseconds encode_time{0};   // compare, compress
  std::chrono::nanoseconds write_time{0};    // write(2)
  std::chrono::nanoseconds flush_time{0};    // fdatasync(2)
  std::chrono::nanoseconds publish_time{0};  // the base copies in memory are updated
  std::chrono::nanoseconds total_time{0};
  // For commit_async() and snapshot_async(): the duration of the call. The stages continue after
  // it.
  std::chrono::nanoseconds pause_time{0};
};

// A region's pages in memory now, counted page by page (0.5 to 4 ms for 1 GiB), and the pages
// evicted since it was opened. With engine mapped the kernel manages the pages, and only
// limit_bytes is set.
struct MemoryUse {
  std::uint64_t limit_bytes = 0;     // of the region, or of the process when it has none of its own
  std::uint64_t resident_bytes = 0;  // base copies and the program's copies
  std::uint64_t evicted_bytes = 0;   // total since the opening
  std::uint64_t spilled_pages = 0;   // dirty, and only in the spill file
  std::uint64_t spill_file_bytes = 0;     // space that the spill file occupies
  std::uint64_t spill_written_bytes = 0;  // total written to it since the opening
  std::uint64_t shared_bytes = 0;  // of the resident bytes, those that other processes may share
};

class Region {
 public:
  Region() noexcept;  // no region: valid() is false
  // Closes the region and swallows errors. While a Pin, a Transaction or a Heap of the region
  // exists, the last of them closes it.
  ~Region();
  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;

  bool valid() const noexcept;  // open, and not closed yet
  void* data() const noexcept;  // page-aligned; constant until close(), then null
  // The T at the region's start, and `count` objects of type T from an offset on. They are plain
  // memory and zero at first. T has no plain pointers, since the address may differ at the next
  // opening. For a region that is open to read, T is const: root<const long>(). invalid_argument:
  // the objects do not lie in the region, or `offset_bytes` is no multiple of T's alignment.
  // read_only: T is not const.
  template <class T>
  T& root() const {
    return *array<T>(1);
  }
  template <class T>
  T* array(std::uint64_t count, std::uint64_t offset_bytes = 0) const {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                  "bytes are what is stored: T must be trivially copyable, and no plain pointer");
    static_assert(alignof(T) <= 4096, "a region's start is page-aligned");
    void* const at = values({offset_bytes, sizeof(T)}, count, alignof(T), !std::is_const_v<T>);
    return std::launder(static_cast<T*>(at));
  }

  // These return 0, false or Engine::automatic when the region is not valid().
  std::uint64_t size_bytes() const noexcept;      // multiple of 4096
  std::uint64_t capacity_bytes() const noexcept;  // the limit of grow()
  bool writable() const noexcept;
  Engine engine() const noexcept;  // the engine in use: never automatic for a valid() region
  // Whether system calls accept pages that are not in memory: with engine mapped, and where
  // RegionOptions::fault_thread has the privilege. Otherwise they fail with EFAULT unless pinned.
  bool serves_system_calls() const noexcept;
  std::string name() const;        // the branch, or the version that was opened
  std::uint64_t sequence() const;  // of the last commit

  // Makes everything stored since the last commit durable, in one atomic step. With nothing to
  // commit it is cheap and makes no new version. `message`: at most 4096 bytes. After an error the
  // last commit is the head, the memory is unchanged, and a later commit() includes everything.
  // no_space: garbage collection has freed too little (the call collects and tries once more, so it
  // may take long); call again when there is space. io: call again when the cause is removed; if a
  // flush failed, the next call throws poisoned. poisoned: see above. corrupted, io: a dirty page cannot be read back from the spill file. busy: a transaction
  // is open. read_only.
  CommitReport commit(const std::string& message = std::string());

  // Like commit(), but scans only `written`, which saves the scan of the whole region. Whole pages
  // count; ranges may overlap. A store outside of them is in the next commit() or snapshot(), or in
  // the next commit_ranges() with a range that contains it. invalid_argument for a range outside
  // the region. With tracker cards the marks count instead.
  CommitReport commit_ranges(const std::vector<ByteRange>& written,
                             const std::string& message = std::string());

  // Drops this process's private copies of pages that equal the last commit. With engine mapped
  // these pages are the image's again, in the page cache, and the memory of the copies is free;
  // with other engines nothing happens. REQUIRES: nothing in these ranges has been stored to since
  // the last commit, nor is during the call. invalid_argument for a range outside the region.
  void drop_copies(const std::vector<ByteRange>& ranges);

  // commit(), and keeps that state under `name`, in one step: after an error neither the commit nor
  // the name exists (docs/durability.md has the exception: a failed flush of the directory), and
  // after a crash both or neither. It makes a new version even when nothing
  // has changed since the last commit; then it writes no pages. No other thread or process can take
  // the name meanwhile. Errors: as commit(), and already_exists; busy: another thread or process
  // has been creating or removing that name for long; invalid_argument: the name is malformed. A
  // name has 1..200 bytes of letters, digits and . _ + - (or UTF-8), and does not start with '.' or
  // '-'.
  CommitReport snapshot(const std::string& name, const std::string& message = std::string());

  // Like commit() and snapshot(), but the call only finds and copies the dirty pages; stores after
  // the call are not included. A thread of the region compresses, writes and flushes. The future
  // has the result of commit() or snapshot(), or its error; after an error the next commit includes
  // everything, as usual. The call itself throws for invalid arguments and for errors that keep it
  // from starting. Pages in the spill file are encoded in the call.
  //  - The next call that changes the region, and close(), wait for the end.
  //  - The future may outlive the region, and its destructor does not wait. A program that drops it
  //    on purpose, as std::ignore, misses no error if its last commit() is synchronous: the stores
  //    of a commit that failed are in the next commit() that succeeds.
  //  - A child of fork(2) must not wait for a future of its parent.
  [[nodiscard]] std::future<CommitReport> commit_async(const std::string& message = std::string());
  [[nodiscard]] std::future<CommitReport> snapshot_async(
      const std::string& name, const std::string& message = std::string());

  // Discards everything stored since the last commit, and growth: O(dirty pages). REQUIRES: no
  // other thread uses the region's memory during the call. Errors:
  //  - io: the dirty pages cannot be found. Nothing has changed; call again.
  //  - corrupted, io, out_of_memory: the committed content of a page cannot be read from the store.
  //    Some pages are restored; the region is poisoned from then on, also for rollback().
  //  - poisoned: the memory cannot be restored, because of the error above, or because the kernel
  //    had no memory for dirty pages, or because a failed commit could not be undone. Close the
  //    region and open the branch again. (A flush that failed does not prevent rollback().)
  //  - busy: a transaction is open. read_only.
  void rollback();

  // Undo: replaces the content and the sizes by those of a version of the store, and commits that.
  // Uncommitted stores are discarded, as by rollback(). `version` is a snapshot of any branch, or
  // any name that Store::resolve() takes: "main~2", "latest". The versions in between stay, so that
  // they can be checked out again: redo. The cost is reading and writing the pages that differ
  // according to the page maps. A smaller version leaves the region's size as it is, and the rest
  // becomes zero. An empty message: "checkout of NAME". Errors: as commit(), rollback(), grow() and
  // reading a version, and not_found; the memory is then as the last commit left it. REQUIRES: no
  // other thread uses the region's memory during the call.
  CommitReport checkout(const std::string& version, const std::string& message = std::string());

  // Begins a transaction. busy: one is open already, in any thread. read_only.
  [[nodiscard]] Transaction begin();

  // Makes the region larger; new bytes are zero, and durable with the next commit. The size is
  // rounded up to pages. invalid_argument beyond capacity_bytes() or below the current size.
  // out_of_memory. rollback() undoes it.
  void grow(std::uint64_t size_bytes);

  // The size of the plain file that the region represents: of the file that Store::export_file()
  // writes, and of an image. It is size_bytes(), unless resize_file() or Store::import_file() has
  // set another, or another program has resized the image. 0 when the region is not valid().
  std::uint64_t file_bytes() const noexcept;
  // Sets file_bytes(); durable with the next commit(), and undone by rollback(). invalid_argument
  // beyond capacity_bytes().
  //  - Beyond size_bytes(): the region grows, as by grow(), and by `room_bytes` more, so that
  //    frequent small appends need not grow the region each time.
  //  - Below the previous size: the bytes past the new end become zero at once, like zero(), and
  //    the region keeps its size.
  //  - From then on each version has its own file size. grow() sets it to the region's size. A
  //    store past the file's end extends the file at the next commit(), to the end of the page.
  //  - Engine mapped: the image has exactly this size (vellum/mapped.hpp).
  void resize_file(std::uint64_t bytes, std::uint64_t room_bytes = 0);

  // The range of these bytes, and of the whole region, as arguments of the calls below.
  // invalid_argument, here and in the calls below, when a range does not lie in the region.
  [[nodiscard]] ByteRange range_of(const void* address, std::size_t length_bytes) const;
  ByteRange whole() const { return {0, size_bytes()}; }

  // Loads a range and keeps it in memory until the Pin is released, also across commits and
  // rollback(). System calls may read the pages, and write them in a region that is open to write;
  // the next commit includes these writes. Pins of the same pages add up. Pinned pages count
  // towards the memory limit but are never evicted: a pin beyond the limit succeeds, and the region
  // then exceeds it. corrupted, io: a page cannot be read. out_of_memory: the kernel refuses
  // memory, or another mapping (engine sigsegv; vm.max_map_count). After an error nothing stays
  // pinned.
  [[nodiscard]] Pin pin(ByteRange range) const;
  // Loads a range, with all processors where it is large, and does not keep it (but see
  // RegionOptions::huge_pages). Errors: as pin().
  void prefetch(ByteRange range) const;
  // The same for several ranges, such as the rows of a batch. All that they need from a remote is
  // requested at once. Nothing is loaded unless all of them lie in the region.
  void prefetch(const std::vector<ByteRange>& ranges) const;

  // Sets a range to zero, like memset(3), for freed memory: zeros take no space in a version. Bytes
  // that are zero are not written again, and pages without content are not loaded. read_only.
  void zero(ByteRange range);

  // Advice on a range. It changes when pages are loaded and evicted, never their content:
  // dont_need, too, keeps every byte, unlike MADV_DONTNEED of madvise(2).
  //  - will_need: a library thread starts to load the range, up to half of the memory limit; the
  //    call does not wait. A page that cannot be read is an error only of the thread that touches
  //    it or calls prefetch().
  //  - dont_need: chunks of 64 KiB that lie wholly in the range's pages are evicted. Chunks with
  //    dirty pages stay, and are the first to be evicted (to the spill file) when memory is short.
  //  - sequential: the first fault reads ahead, up to 2 MiB; pages already passed are evicted first
  //    when memory is short. random: no read-ahead and no bulk load. normal: three faults in
  //    consecutive chunks start the read-ahead. Each of these three holds until the next of them,
  //    or close().
  // Bulk load: when faults of a version that is open to read reach a sixty-fourth of its chunks, at
  // least 16 of them, library threads load all of it, up to half of the memory limit.
  void advise(ByteRange range, Advice advice) const;

  MemoryUse memory_use() const;

  // Unmaps the memory. Uncommitted stores are lost. Waits for all calls in progress; later calls
  // throw invalid_argument, and a later touch is a SIGSEGV. The region is not valid() afterwards.
  void close();
  // close(), but the memory stays in place with its content: a mapping of the process from data()
  // to capacity_bytes(), which the caller must unmap (munmap(2)). unsupported unless the engine is
  // mapped: only its pages need no fault handler.
  void close_and_leave_memory();

 private:
  friend struct region::RegionAccess;
  friend class ConstHeap;  // keeps its region open
  friend class Transaction;
  struct Impl;
  Region(const Region&) noexcept;  // the same region
  // The address of `count` values from first.offset_bytes on, each of first.length_bytes. Throws
  // when they do not lie in the region.
  void* values(ByteRange first, std::uint64_t count, std::size_t alignment, bool to_write) const;
  explicit Region(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// Keeps a range of a region in memory: see Region::pin(). It keeps the region open; after
// Region::close() it does nothing.
class [[nodiscard]] Pin {
 public:
  Pin() noexcept;
  ~Pin();
  Pin(Pin&&) noexcept;
  Pin& operator=(Pin&&) noexcept;
  void release() noexcept;

 private:
  friend class Region;
  struct Impl;
  explicit Pin(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// Stores that are committed together or rolled back: a transaction that is destroyed without a
// commit, as by an exception, is rolled back.
//
//   auto transaction = region.begin();
//   transfer(accounts, from, to, amount);   // may throw
//   transaction.commit();
//
// It rolls back to the last commit. Stores from before begin() belong to it, since finding them
// would cost a scan of the region: they are committed or rolled back with it.
//
// While it is open, the region's own commit(), snapshot(), their variants, rollback(), checkout()
// and begin() throw Errc::busy, in every thread, so that no part of it is committed separately.
// grow() belongs to it. Loads and stores of all threads continue, and all stores belong to it. Its
// end without a commit is a rollback(), with the same REQUIRES: no other thread uses the memory
// meanwhile.
//
// It keeps the region open, and stays valid when the Region is moved. Region::close() ends it
// without a commit. In a child of fork(2) it does nothing.
class [[nodiscard]] Transaction {
 public:
  Transaction() noexcept = default;  // not open
  ~Transaction() { end(); }
  Transaction(Transaction&& other) noexcept : region_(std::move(other.region_)) {}
  Transaction& operator=(Transaction&& other) noexcept {
    if (this != &other) {
      end();
      region_ = std::move(other.region_);
    }
    return *this;
  }

  bool is_open() const noexcept;

  // As Region::commit(); ends the transaction. After an error it is still open, with all of its
  // stores: remove the cause and call again, or let it be rolled back. After poisoned, opening the
  // branch again finds all of it or nothing. invalid_argument when it is not open.
  CommitReport commit(const std::string& message = std::string());
  // As Region::rollback(); ends the transaction. After an error it is still open.
  void rollback();

 private:
  friend class Region;
  explicit Transaction(std::shared_ptr<Region::Impl> region) noexcept
      : region_(std::move(region)) {}
  std::shared_ptr<Region::Impl> opened() const;
  // Rolls back. If that fails, it prints a line on standard error, and the region refuses commits
  // (Errc::poisoned) until Region::rollback() succeeds, or the branch is opened again.
  void end() noexcept;
  std::shared_ptr<Region::Impl> region_;  // null: not open
};

}  // namespace vellum

#endif  // VELLUM_REGION_HPP
