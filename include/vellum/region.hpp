// vellum/region.hpp: a range of plain memory that is durable, failure-atomic and versioned.
//
//   auto store  = vellum::Store::open_or_create("/data/s");
//   auto region = store.open_or_create_region("main", 1 << 30);
//   auto* count = static_cast<std::uint64_t*>(region.data());
//   ++*count;
//   region.commit();                  // durable, all or nothing
//   region.snapshot("first");         // kept permanently, at the cost of the changes
//
// Guarantees:
//  - After a crash at any moment, opening gives the state of the last commit() that returned, or of
//    one that was in progress, whole; never a mix.
//  - Pages come in from the store on first touch, 64 KiB at a time (RegionOptions::fault_bytes),
//    checked and decompressed. After that, reads and writes run at the speed of memory. The first
//    write to a page since the last commit costs about 1 us (3 us the first time ever); later
//    writes cost nothing.
//  - Memory: a touched page is held once, a written page twice: its committed content beside the
//    current one, from which commit() takes the difference. A region may be larger than memory.
//    Beyond a limit, unchanged pages are dropped and come in again on the next touch; written pages
//    go to the spill file, as their differences, and commit() takes them from there. When the
//    spill's disk is full, they stay in memory whatever the limit, and a line on standard error
//    says so.
//
// Threads: loads and stores need no more care than in plain memory. Member functions may be called
// from any thread; commit(), snapshot(), rollback(), grow() and close() take turns. close() waits
// for calls that have begun in other threads; a later call is invalid_argument, and a later touch
// of the memory is a SIGSEGV. While a Region is destroyed or moved, no other thread may use it.
// commit() may run beside writers: it includes every store that happened before the call. A store
// during the call is in this commit or in the next, each aligned 8 bytes whole.
//
// System calls: a pointer into a region may be passed to read(2), write(2) and the like only for
// pages that are already present. For other pages the kernel answers EFAULT, because a page comes
// in through a signal that only user code gets. pin() makes a range present and keeps it so.
//
// Signals: the first region installs handlers for SIGBUS and SIGSEGV. A fault elsewhere goes on to
// the previous handler, or kills the process as usual. A handler that the program installs later
// must do the same: for a fault that is not its own, it calls the handler that sigaction(2) gave
// back. Otherwise it receives the page-ins, and pages do not come in; a commit that finds another
// handler in place of the region's says so on standard error, once. A page that cannot be read back
// (damage, I/O error) is never delivered as data: the fault writes one line to standard error,
// naming version, page and file, and the process gets SIGBUS. pin() or prefetch() beforehand gives
// an exception instead.
//
// Engine mapped maps a plain file, the branch's image, that holds the last commit. RegionOptions::
// image_path names it; without a name it lies in the store.
//  - The kernel brings pages in, and its page cache shares them with every process that maps or
//    reads the file. They are not checked: if a failing disk alters the file, the region reads the
//    altered bytes. System calls take pointers to any page.
//  - A written page becomes private to this process, and stays so until drop_copies(), rollback()
//    or close(). The image follows each commit once that is durable. If it cannot (a full disk),
//    the commit has happened all the same, a line goes to standard error, and later commits and
//    openings try again.
//  - After a crash, opening brings the image to the last commit: it compares the places that may
//    differ with the store.
//  - A file that another program has made, or has changed since the image was closed, stays as it
//    is: the region opens with its content, and the next commit stores the differences. A longer
//    file makes the region larger.
//  - A file whose size is no multiple of 4096 keeps its size, as Region::file_bytes(), until
//    something is stored past its end. So does any file of a branch that already has such a size;
//    that file may also have become shorter, and its lost part is zero.
//  - Opening refuses, with the file's name: any other file that has become shorter
//    (invalid_argument); and (already_exists) a file that has changed while the branch had commits
//    by another engine, another file in its place after a crash, and a file with content for a
//    branch with other content. An empty file is filled from the branch.
//  - No other program may write the file while the region is open. The region locks it by flock(2),
//    or throws Errc::busy. If a program cuts it shorter meanwhile, touching the lost pages is a
//    SIGBUS. On tmpfs, reading a hole takes a page; when none is left, that is a SIGBUS.
//  - Read-only versions open by another engine.
//
// ThreadSanitizer: an atomic operation stronger than relaxed hangs if it faults (on a page that is
// not present; under engine sigsegv also on the first write after a commit), because TSan holds a
// lock over it that the fault handler needs. Use relaxed operations, or engine uffd and prefetch().
//
// fork(): a child does not have the region (MADV_DONTFORK): touching it there is a plain SIGSEGV.
// It does not have the branch's lock either: when the parent is killed, the branch is free.
//
// Moved stores: if a store is moved while a region is open, or another directory takes its place,
// commits throw Errc::io, which names the file, and change nothing in either. When the store is
// back in its place, commits work again.
#ifndef VELLUM_REGION_HPP
#define VELLUM_REGION_HPP

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <vellum/byte_range.hpp>
#include <vellum/encoding.hpp>
#include <vellum/error.hpp>
#include <vellum/tracker.hpp>

namespace vellum {

// How pages come in and how writes are noticed.
enum class Engine {
  automatic,  // uffd; where the kernel does not offer or permit it, sigsegv, with a one-line notice
              // on standard error
  uffd,       // userfaultfd(2), SIGBUS mode + asynchronous write protection (Linux 6.7 and later)
  sigsegv,  // mprotect(2) and SIGSEGV, as in Privateer 2.0 (HPEC 2022): any Linux, 4.5 us a written
            // page
  mapped,   // a private mapping of a plain file that holds the last commit, as in Privateer 1.0
            // (CLUSTER 2021): see RegionOptions::image_path
};
const char* engine_name(Engine engine) noexcept;

struct RegionOptions {
  Engine engine = Engine::automatic;  // the environment variable VELLUM_ENGINE=uffd|sigsegv|
                                      // mapped overrides `automatic`
  // Address space to reserve, so that grow() can work in place. 0: for a writable region the larger
  // of 4 times the region and 64 GiB, for a read-only one just the region. It costs nothing until
  // it is touched.
  std::uint64_t capacity_bytes = 0;
  // Pointers into the region stay valid from one opening to the next: the store remembers the
  // address of the first opening (or `base_address`, when it is not 0: a multiple of 2 MiB) and
  // maps there or throws Errc::busy. Without this option an opening tries the remembered address
  // first, and takes another when it is not free.
  bool fixed_address = false;
  std::uint64_t base_address = 0;
  // The caller has reserved the range of `capacity_bytes` at `base_address`, both multiples of 4096
  // (mmap(2) with PROT_NONE), and will unmap it. The region replaces the mappings there, stays
  // within the range, and leaves it reserved at close(). The store does not remember the address.
  bool over_reservation = false;
  // The plain file that engine `mapped` maps; naming one chooses that engine. Empty: the file of
  // the last time, or else one in the store. See "Engine mapped" above.
  std::string image_path;
  // The region opens with the content of the file at `image_path`, whatever the branch had. This
  // includes a file that is empty, has become shorter, or is another file than before a crash;
  // without this option the first is filled and the other two are refused. A missing file is still
  // made from the branch. For a program whose files are watched: it may remove its file and make it
  // anew.
  bool image_is_content = false;
  // Threads that help commit() to encode, beside the caller. -1: one less than the processors, at
  // most 7.
  int encode_threads = -1;
  // The memory that the region may use: committed copies and private ones together. 0: it shares a
  // limit with the other regions of the process: three quarters of its cgroup's or the machine's
  // memory, less 64 MiB, at least half; VELLUM_MEMORY_LIMIT=BYTES replaces it. See "Memory".
  std::uint64_t memory_limit_bytes = 0;
  // The directory for written, uncommitted pages that have no room in memory, best on a fast disk.
  // Empty: the store's. The file there has no name, and goes with the process.
  std::string spill_directory;
  // How much one fault brings in and one eviction takes out: a power of two from 4096 to 262144;
  // 0: 65536. A smaller value suits single words at random places of a region larger than memory,
  // if its blocks are small too (Encoding::block_bytes), because blocks are decompressed whole. A
  // larger value gains little, as reading in order is read ahead. Engine mapped leaves this to the
  // kernel.
  std::uint32_t fault_bytes = 0;
  // For versions that are open to read: prefetch() puts pages into huge pages of 2 MiB, where its
  // range covers them and none of their 64 KiB chunks (precisely: of fault_bytes) is all zero.
  // Following pointers at random gets faster (1.8 times in 1 GiB; reading in order does not),
  // prefetch() slower (0.6 s for 1 GiB). Huge pages stay in memory until close(): half of the
  // memory limit at most. Needs Linux 6.1; without it nothing happens. In branches nothing happens
  // either: there the kernel gives each written page a copy of its own.
  bool huge_pages = false;
  // How this region's commits are stored. Without a value: as the branch was made, or as the store
  // says (StoreOptions). A value is kept when the branch is made with it; otherwise it holds for
  // this opening only.
  std::optional<Encoding> encoding;
  // How commits of a branch find the stores (vellum/tracker.hpp). For small commits in quick
  // succession, use cards: after a commit, writing a page again costs nothing if it was written
  // before, and commit() looks at marked pages only. The region then lies between 0x200000000000
  // and 0x300000000000, at a multiple of 4 GiB (base_address too), and has at most 4 TiB; cards and
  // over_reservation exclude each other. Engine mapped also finds pages, as cards_and_pages does.
  Tracker tracker = Tracker::pages;
  // Compare marks with the changed bytes at each commit: an unmarked store is Errc::corrupted, with
  // the page's number and address. For tests. VELLUM_VERIFY_CARDS=1 has the same effect.
  bool verify_cards = false;
  // Remember at close() which pages were touched, and bring them in at the next opening of the same
  // branch or version with this option. A library thread starts at the opening, which does not
  // wait, and takes the pages in the order in which they first came in, up to half of the memory
  // limit. It evicts nothing to make room. close() forgets the chunks of 64 KiB that were not
  // touched this time.
  //  - Cost: memory for pages that come in and are not touched; a thread's time beside the
  //    program's, so it pays with a processor to spare; at each close(), also of a version that is
  //    only read, a file in the store (its directory `hints`) with some bytes for each stretch of
  //    pages; 4 bytes for each 64 KiB touched. A chunk brought in this way is mapped when it is
  //    touched.
  //  - The file is a hint: if it is corrupted or missing, nothing follows. It is not flushed, and
  //    not written where the store cannot be written, after a crash, or in a fork. If several
  //    regions use the same version, the last to close is remembered. The file goes with its branch
  //    or version.
  //  - Engine mapped leaves paging to the kernel, and ignores this option.
  bool working_set = false;
  // Give back unneeded space while the region writes, as Store::collect_garbage() does, beside all
  // readers and writers: whenever packs have grown by 32 MiB, or by a fifth of the size that
  // versions need, if that is more, and at close(). A program that rewrites its region for months,
  // or makes snapshots and removes them, thus takes at most 1.3 times the needed space, plus
  // 64 MiB.
  //  - A library thread collects, and ends with the collection. It gives back a MiB at a time,
  //    between commits, so a commit seldom meets it; then the commit waits for that MiB, under a
  //    millisecond where a processor is free. Commits without a pause between them that write more
  //    than it frees wait for it: after 12 MiB for at most 20 ms each, after 16 MiB or more once
  //    for at most a second. close() waits for at most a second. A large commit during a
  //    collection does not look for pages that the store already holds.
  //  - On a full disk commit() and snapshot() collect once and try again before they throw
  //    Errc::no_space; commit_async() and snapshot_async() collect for the next call.
  //  - A failure of the collection goes to standard error, once for a region, and is no error of a
  //    commit. Several writers of one store take turns.
  bool background_gc = true;
};

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
  // Time of each stage, in order; together they are total_ns.
  std::uint64_t scan_ns = 0;     // the tracker finds and re-arms dirty pages
  std::uint64_t encode_ns = 0;   // compare, compress
  std::uint64_t write_ns = 0;    // write(2)
  std::uint64_t flush_ns = 0;    // fdatasync(2)
  std::uint64_t publish_ns = 0;  // the committed copies in memory follow
  std::uint64_t total_ns = 0;
  // For commit_async() and snapshot_async(): the duration of the call. The stages go on after it.
  std::uint64_t pause_ns = 0;
};

// A region's pages in memory now, counted page by page (0.5 to 4 ms for 1 GiB), and the pages that
// have left it since it was opened.
struct MemoryUse {
  std::uint64_t limit_bytes = 0;     // of the region, or of the process when it has none of its own
  std::uint64_t resident_bytes = 0;  // committed copies and private ones
  std::uint64_t evicted_bytes = 0;   // all that ever left
  std::uint64_t spilled_pages = 0;   // written, not committed, and not in memory
  std::uint64_t spill_file_bytes = 0;     // space that the spill's file occupies
  std::uint64_t spill_written_bytes = 0;  // all that was ever written to it
};

// Keeps a range of a region present in memory while it lives. Movable. Must not outlive its region.
class Pin {
 public:
  Pin() noexcept;
  ~Pin();
  Pin(Pin&&) noexcept;
  Pin& operator=(Pin&&) noexcept;
  void release() noexcept;

 private:
  friend class Region;
  struct Impl;
  explicit Pin(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;
};

class Region {
 public:
  Region() noexcept;  // no region: every call but valid() is invalid_argument
  ~Region();          // close(), errors swallowed
  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;

  bool valid() const noexcept;
  void* data() const noexcept;                // page-aligned; stays the same for the region's life
  std::uint64_t size_bytes() const noexcept;  // multiple of 4096
  std::uint64_t capacity_bytes() const noexcept;  // how far grow() can go
  bool writable() const noexcept;
  Engine engine() const noexcept;  // the engine in use: never automatic
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
  // call that changes the region, and close(), wait for the end. The future need not be waited for,
  // nor kept, and may outlive the region. After fork(), a child must not wait for its parent's
  // future.
  std::future<CommitReport> commit_async(const std::string& message = std::string());
  std::future<CommitReport> snapshot_async(const std::string& name,
                                           const std::string& message = std::string());

  // Forgets everything stored since the last commit: O(pages dirty). REQUIRES: no other thread uses
  // the region during the call.
  void rollback();

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
  //  - Below the previous size: the bytes past the new end become zero at once, like clear(), and
  //    the region keeps its size.
  //  - From then on the size belongs to each version. grow() gives the file the region's size. A
  //    store past the file's end makes the file longer at the next commit(), to the end of the
  //    page.
  //  - Engine mapped: the image has exactly this size, at once when it becomes longer, and with the
  //    next commit when it becomes shorter. Pages of the region that lie wholly past its end cannot
  //    be touched (SIGBUS) until the file is longer again.
  void resize_file(std::uint64_t bytes, std::uint64_t room_bytes = 0);

  // Brings a range in and keeps it: system calls work on it. Errc::corrupted or io when a page
  // cannot be read.
  Pin pin(const void* address, std::size_t length_bytes) const;
  // Brings a range in, without keeping it (but see RegionOptions::huge_pages).
  void prefetch(const void* address, std::size_t length_bytes) const;

  // Makes a range zero, like memset(3). Zero bytes are not written again, and empty pages that are
  // not in memory are not brought in. For freed memory: zeros take no space in a version.
  // read_only; invalid_argument when the range does not lie in the region.
  void clear(void* address, std::size_t length_bytes);

  // Tells the library what the program will do with a range. Advice changes when pages come in and
  // go out, never their content: dont_need, too, keeps every byte, unlike madvise(2).
  // invalid_argument when the range does not lie in the region.
  //  - will_need: a library thread starts to bring the range in, up to half of the memory limit;
  //    the call does not wait. A page that cannot be read is left to the thread that touches it or
  //    calls prefetch().
  //  - dont_need: chunks of 64 KiB that lie wholly in the range's pages leave memory. Chunks with
  //    uncommitted pages stay, and are the first to go (to the spill file) when memory is short.
  //  - sequential: the first fault reads ahead, up to 2 MiB; pages already passed go first when
  //    memory is short. random: nothing is read ahead. normal: three faults in consecutive chunks
  //    start reading ahead. Each of these three holds until the next of them, or close().
  // Engine mapped leaves paging to the kernel: madvise(2), with MADV_COLD for dont_need.
  void advise(const void* address, std::size_t length_bytes, Advice advice) const;

  MemoryUse memory_use() const;

  // Unmaps. Uncommitted stores are lost. The region is not valid() afterwards.
  void close();
  // close(), but the memory stays in place with its content: a mapping of the process's own from
  // data() to capacity_bytes(), which the caller must unmap (munmap(2)). unsupported unless the
  // engine is mapped: only its pages need no fault handler.
  void close_and_leave_memory();

  struct Impl;  // src/region/region.cpp
  explicit Region(std::shared_ptr<Impl> impl) noexcept;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace vellum

#endif  // VELLUM_REGION_HPP
