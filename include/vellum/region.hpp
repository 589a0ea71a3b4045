// vellum/region.hpp: a range of plain memory that is durable, failure-atomic and versioned.
//
//   auto store  = vellum::Store::open_or_create("/data/s");
//   auto region = store.open_or_create_region("main", 1 << 30);
//   auto& count = region.root<std::uint64_t>();   // plain memory, zero at first
//   ++count;
//   region.commit();                  // durable, all or nothing
//   region.snapshot("first");         // kept permanently, at the cost of the changes
//
// After a crash at any moment, opening gives the state of the last commit() that returned, or of
// one that was in progress, whole; never a mix.
//
// Pages come in from the store on first touch, checked and decompressed. After that, reads and
// writes run at the speed of memory. The first write to a page since the last commit costs about
// 1 us; later writes cost nothing. A touched page is held in memory once. A written page is held
// twice until it rests: half a second after the last commit, or while commits record much new data,
// the second copy goes, and the next write to the page costs about 2 us. A region may be larger
// than memory: beyond a limit, pages go and come back on the next touch.
//
// Threads: loads and stores need no more care than in plain memory. Member functions may be called
// from any thread, and commit() may run beside writers: it includes every store that happened
// before the call. While a Region is destroyed or moved, no other thread may use it.
//
// Four things differ from plain memory:
//  - A system call on an absent page fails with EFAULT, and so may one that writes to a page whose
//    second copy is going: call pin() first.
//  - The first region installs handlers for SIGBUS and SIGSEGV. A handler that the program installs
//    later must call the previous one for a fault that is not its own.
//  - A page that cannot be read back is never delivered as data: the fault says so on standard
//    error, and the process gets SIGBUS. pin() or prefetch() beforehand gives an exception instead.
//  - A child of fork(2) does not have the region.
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
struct RegionAccess;  // the library's own way to a region's inside
}

class ConstHeap;
class Pin;
class Transaction;

// A program's statement about a range: see Region::advise().
enum class Advice : unsigned char {
  normal,      // reading in order is noticed, and read ahead
  sequential,  // it will be read in order
  random,      // it will not
  will_need,   // soon
  dont_need,   // not soon
};

struct CommitReport {
  std::uint64_t sequence = 0;       // of the version that is now the head
  std::uint64_t pages_dirty = 0;    // found by the tracker
  std::uint64_t pages_changed = 0;  // of these, pages whose bytes differ from the last commit
  std::uint64_t bytes_written = 0;  // to journal and packs
  bool checkpointed = false;        // went to packs, with the journal's earlier commits
  // The stages, in order; together they are total_time.
  std::chrono::nanoseconds scan_time{0};     // the tracker finds and re-arms dirty pages
  std::chrono::nanoseconds encode_time{0};   // compare, compress
  std::chrono::nanoseconds write_time{0};    // write(2)
  std::chrono::nanoseconds flush_time{0};    // fdatasync(2)
  std::chrono::nanoseconds publish_time{0};  // the committed copies in memory follow
  std::chrono::nanoseconds total_time{0};
  // For commit_async() and snapshot_async(): the duration of the call. The stages go on after it.
  std::chrono::nanoseconds pause_time{0};
};

// A region's pages in memory now, counted page by page (0.5 to 4 ms for 1 GiB), and the pages that
// have left it since it was opened. With engine mapped the pages are the kernel's, and only
// limit_bytes is known.
struct MemoryUse {
  std::uint64_t limit_bytes = 0;     // of the region, or of the process when it has none of its own
  std::uint64_t resident_bytes = 0;  // committed copies and private ones
  std::uint64_t evicted_bytes = 0;   // all that ever left
  std::uint64_t spilled_pages = 0;   // written, not committed, and not in memory
  std::uint64_t spill_file_bytes = 0;     // space that the spill file occupies
  std::uint64_t spill_written_bytes = 0;  // all that was ever written to it
  std::uint64_t shared_bytes = 0;  // of the resident ones: those that other processes may share
};

class Region {
 public:
  Region() noexcept;  // no region: every call but valid() is invalid_argument
  // Closes it, errors swallowed, unless a Pin, a Transaction or a Heap of it lives: then the last
  // of them does.
  ~Region();
  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;

  bool valid() const noexcept;
  void* data() const noexcept;  // page-aligned; stays the same for the region's life
  // The T at the region's start, and `count` of them from an offset on: plain memory like all of
  // it, so all zero at first, and for types without plain pointers (an address is another one at
  // the next opening). For a region that is open to read, T is const: root<const long>().
  // invalid_argument: the region is too small, or `offset_bytes` is no multiple of T's alignment.
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

  std::uint64_t size_bytes() const noexcept;      // multiple of 4096
  std::uint64_t capacity_bytes() const noexcept;  // how far grow() can go
  bool writable() const noexcept;
  Engine engine() const noexcept;  // the engine in use: never automatic
  // Whether a system call may touch absent pages: with engine mapped, and where
  // RegionOptions::fault_thread is permitted to. Otherwise it fails with EFAULT, unless pin() came
  // first.
  bool serves_system_calls() const noexcept;
  std::string name() const;        // the branch, or the version that was opened
  std::uint64_t sequence() const;  // of the last commit

  // Makes everything stored since the last commit durable, in one step. With nothing to commit it
  // is cheap, and makes no new version. Errors: no_space, io: the commit has not happened, the last
  // one stays, memory is unchanged, and a later commit() includes everything. poisoned: a flush
  // failed now or earlier; reopen the branch. read_only.
  CommitReport commit(const std::string& message = std::string());

  // Like commit(), but scans only `written`, which saves a scan of the whole region. Whole pages
  // count; ranges may overlap. A store elsewhere is in the next commit() or snapshot(), or in the
  // next commit_ranges() that names it. invalid_argument for a range outside the region. With
  // tracker cards the marks count instead.
  CommitReport commit_ranges(const std::vector<ByteRange>& written,
                             const std::string& message = std::string());

  // Drops this region's own copies of pages that equal the last commit. With engine mapped these
  // pages are the image's again, in the page cache, and their memory is free; with other engines
  // nothing happens. REQUIRES: nothing in these ranges has been stored to since the last commit,
  // nor is during the call. invalid_argument for a range outside the region.
  void drop_copies(const std::vector<ByteRange>& ranges);

  // commit(), then keeps that state under `name`, which nobody else can take meanwhile. Two errors
  // commit nothing: already_exists, and busy (another thread or process has been making or removing
  // that name for long). invalid_argument for a malformed name: 1..200 bytes of letters, digits and
  // . _ + - (or UTF-8), not starting with '.' or '-'.
  CommitReport snapshot(const std::string& name, const std::string& message = std::string());

  // Like commit() and snapshot(), but the call only finds and copies the written pages; stores
  // after the call are not included. A thread of the region's own compresses, writes and flushes.
  // The future gives the result of commit() or snapshot(), or throws its error; after an error the
  // next commit includes everything, as usual. The call itself throws for invalid arguments and for
  // errors that keep it from starting. Pages in the spill file are encoded in the call. The next
  // call that changes the region, and close(), wait for the end. The future may outlive the region.
  // Its destructor does not wait. A program that drops it on purpose, as std::ignore, misses no
  // error if its last commit() is a synchronous one: what failed is in the next commit() that
  // succeeds. After fork(), a child must not wait for its parent's future.
  [[nodiscard]] std::future<CommitReport> commit_async(const std::string& message = std::string());
  [[nodiscard]] std::future<CommitReport> snapshot_async(
      const std::string& name, const std::string& message = std::string());

  // Forgets everything stored since the last commit: O(pages dirty). REQUIRES: no other thread uses
  // the region during the call.
  void rollback();

  // Brings the content and the sizes of a version of the store into this memory, and commits that:
  // undo. What was stored since the last commit is forgotten, as by rollback(). `version` is a
  // snapshot of this branch or another, or what Store::resolve() takes: "main~2", "latest". The
  // versions in between stay, so that they can be checked out again: redo. It costs reading and
  // writing the pages that differ, as the page maps tell. The region keeps its size where the
  // version's is smaller; the rest is zero then. An empty message: "checkout of NAME". Errors: as
  // commit(), grow() and reading a version; memory is then as the last commit left it. busy: a
  // transaction is open. REQUIRES: no other thread uses the region during the call.
  CommitReport checkout(const std::string& version, const std::string& message = std::string());

  // Begins a transaction. busy: one is open already, in any thread. read_only.
  [[nodiscard]] Transaction begin();

  // Makes the region larger; new bytes are zero, and durable with the next commit. The size is
  // rounded up to pages. invalid_argument beyond capacity_bytes() or below the current size.
  // rollback() undoes it.
  void grow(std::uint64_t size_bytes);

  // The size of the plain file that the region stands for: the size that Store::export_file()
  // writes, and the size of an image. It is size_bytes(), unless resize_file() or
  // Store::import_file() has set another, or another program has resized the image.
  std::uint64_t file_bytes() const noexcept;
  // Sets file_bytes(); durable with the next commit(), and undone by rollback(). invalid_argument
  // beyond capacity_bytes().
  //  - Beyond size_bytes(): the region grows, as by grow(), and by `room_bytes` more, so that a
  //    file that is appended to a little at a time need not grow the region each time.
  //  - Below the previous size: the bytes past the new end become zero at once, like zero(), and
  //    the region keeps its size.
  //  - From then on the size belongs to each version. grow() gives the file the region's size. A
  //    store past the file's end makes the file longer at the next commit(), to the end of the
  //    page.
  //  - Engine mapped: the image has exactly this size (vellum/mapped.hpp).
  void resize_file(std::uint64_t bytes, std::uint64_t room_bytes = 0);

  // The range of these bytes, for the calls below, and of the whole region. invalid_argument when
  // they do not all lie in the region, as in the calls below.
  [[nodiscard]] ByteRange range_of(const void* address, std::size_t length_bytes) const;
  ByteRange whole() const { return {0, size_bytes()}; }

  // Brings a range in and keeps it: system calls work on it. Errc::corrupted or io when a page
  // cannot be read.
  [[nodiscard]] Pin pin(ByteRange range) const;
  // Brings a range in, by all processors where it is large, without keeping it (but see
  // RegionOptions::huge_pages).
  void prefetch(ByteRange range) const;
  // The same for several ranges, such as the rows of a batch. What they need of a version at a
  // remote is fetched all at once, however many there are.
  void prefetch(const std::vector<ByteRange>& ranges) const;

  // Makes a range zero, like memset(3). Zero bytes are not written again, and empty pages that are
  // not in memory are not brought in. For freed memory: zeros take no space in a version.
  // read_only.
  void zero(ByteRange range);

  // Tells the library what the program will do with a range. Advice changes when pages come in and
  // go out, never their content: dont_need, too, keeps every byte, unlike madvise(2).
  //  - will_need: a library thread starts to bring the range in, up to half of the memory limit;
  //    the call does not wait. A page that cannot be read is left to the thread that touches it or
  //    calls prefetch().
  //  - dont_need: chunks of 64 KiB that lie wholly in the range's pages leave memory. Chunks with
  //    uncommitted pages stay, and are the first to go (to the spill file) when memory is short.
  //  - sequential: the first fault reads ahead, up to 2 MiB; pages already passed go first when
  //    memory is short. random: nothing is read ahead, and a version is not loaded widely. normal:
  //    three faults in consecutive chunks start reading ahead. Each of these three holds until the
  //    next of them, or close().
  // A version that a program reads at many places (faults in a sixty-fourth of its chunks, at least
  // 16 of them) is loaded widely: library threads bring all of it in, up to half of the memory
  // limit.
  void advise(ByteRange range, Advice advice) const;

  MemoryUse memory_use() const;

  // Unmaps. Uncommitted stores are lost. The region is not valid() afterwards.
  void close();
  // close(), but the memory stays in place with its content: a mapping of the process's own from
  // data() to capacity_bytes(), which the caller must unmap (munmap(2)). unsupported unless the
  // engine is mapped: only its pages need no fault handler.
  void close_and_leave_memory();

 private:
  friend struct region::RegionAccess;
  friend class ConstHeap;  // holds the region that it lies in
  friend class Transaction;
  struct Impl;
  Region(const Region&) noexcept;  // the same region
  // The address of `count` values from an offset on. Throws when they do not lie in the region.
  void* values(ByteRange first, std::uint64_t count, std::size_t alignment, bool to_write) const;
  explicit Region(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// Keeps a range of a region present in memory while it lives. Movable. It keeps the region open;
// after Region::close() it does nothing.
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

// What is stored between Region::begin() and commit() is kept whole or not at all: it is rolled
// back when the transaction is destroyed without a commit, as by an exception.
//
//   auto transaction = region.begin();
//   transfer(accounts, from, to, amount);   // may throw
//   transaction.commit();
//
// It goes back to the last commit: stores from before begin() belong to it, and are committed or
// rolled back with it. (To find them would cost a scan of the region.)
//
// While it is open, the region itself refuses commit(), snapshot(), rollback() and the like by
// Errc::busy, in every thread, so that nobody commits half of it; grow() belongs to it. Loads and
// stores of all threads go on as ever, and all of them belong to it: as rollback(), its end without
// a commit REQUIRES that no other thread uses the region meanwhile.
//
// It is movable, and keeps the region open, wherever the Region is moved. Region::close() ends it
// without a commit. In a child of fork(2) it does nothing.
class [[nodiscard]] Transaction {
 public:
  Transaction() noexcept = default;  // is not open
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
  // stores: make room and call it again, or leave it to be rolled back. After poisoned, opening the
  // branch again finds all of it or nothing. invalid_argument when it is not open.
  CommitReport commit(const std::string& message = std::string());
  // As Region::rollback(); ends the transaction.
  void rollback();

 private:
  friend class Region;
  explicit Transaction(std::shared_ptr<Region::Impl> region) noexcept
      : region_(std::move(region)) {}
  std::shared_ptr<Region::Impl> opened() const;
  // Rolls back. If that fails, a line on standard error says so, and the region refuses commits
  // (Errc::poisoned) until a call of Region::rollback() succeeds, or the branch is opened again.
  void end() noexcept;
  std::shared_ptr<Region::Impl> region_;  // null: not open
};

}  // namespace vellum

#endif  // VELLUM_REGION_HPP
