// vellum/region.hpp: a range of plain memory that is durable, failure-atomic and versioned.
//
//   auto store  = vellum::Store::open_or_create("/data/s");
//   auto region = store.open_or_create_region("main", 1 << 30);
//   auto* count = static_cast<std::uint64_t*>(region.data());
//   ++*count;
//   region.commit();                  // durable, all or nothing
//   region.snapshot("first");         // kept for ever, at the cost of what changed
//
// What holds:
//  - After a crash at any moment, opening gives the state of the last commit() that returned, or of
//    one that was in progress, whole; never a mix.
//  - Bytes come in from the store on first touch, 64 KiB at a time (RegionOptions::fault_bytes),
//    checked and decompressed; after that, reads and writes run at the speed of memory. The first
//    write to a page since the last commit costs about 1 us (3 us the first time ever), nothing
//    afterwards.
//  - Memory: a touched page is held once; a page that was written, twice (its committed content
//    beside the current one, from which commit() takes what changed). A region may be larger than
//    memory: beyond a limit, pages that are as committed are forgotten and come in again when they
//    are touched; pages that were written go to the stash, as what they differ by. commit() takes
//    them from there. When the stash's disk is full, they stay in memory, whatever the limit, and a
//    line on standard error says so.
//
// Threads: loads and stores need no care beyond what plain memory needs. Member functions may be
// called from any thread, one commit(), snapshot(), rollback(), grow() or close() at a time (they
// take turns). close() waits for what has begun in other threads; what comes after it is
// invalid_argument, and a touch of the memory a SIGSEGV. Only to destroy or to move a Region no
// other thread may use it. commit() beside running writers: every store that happened before the
// call is in; a store that runs during the call is in this commit or in the next, each aligned 8
// bytes whole.
//
// System calls: a pointer into a region may be handed to read(2), write(2) and the like only for
// pages that are already present; on others the kernel answers EFAULT, because a page comes in
// through a signal that only user code gets. pin() makes a range present and keeps it so.
//
// Signals: the first region installs handlers for SIGBUS and SIGSEGV; faults elsewhere go on to the
// handler that was there before, or kill the process as usual. A handler that the program installs
// later has to do the same: call the one that sigaction(2) gave back for what is not its own. Else
// it gets the page-ins, and pages do not come in; a commit says so on standard error, once, when it
// finds another handler in place of the region's. A page that cannot be read back
// (damage, I/O error) is never delivered as data: the fault writes one line to standard error,
// naming version, page and file, and the process gets SIGBUS. Use pin() or prefetch() first to get
// an exception instead.
//
// Engine mapped maps a plain file, the branch's image, that holds the last commit. RegionOptions::
// image_path names it; without one it lies in the store.
//  - The kernel brings pages in, and its page cache shares them with every process that maps or
//  reads the file. They are not checked: what a failing disk makes of the file is read as it is.
//  System calls take pointers to any page.
//  - A page that is written becomes this process's own, and stays so until rollback() or close().
//  The image follows each commit when that is durable. If it cannot (a full disk), the commit has
//  happened all the same, a line goes to standard error, and later commits and openings try again.
//  - After a crash, opening makes the image what the last commit is: where it may differ, it is
//  compared with the store.
//  - A file that another program made, or has changed since the image was closed, stays as it is:
//  its content is what the region opens with, and the next commit stores what differs. A file of
//  more bytes makes the region larger. One whose size is no multiple of 4096 keeps its size, as
//  Region::file_bytes(), until something is stored past its end. So does one whose branch has such
//  a size already; that one may become shorter, too, and what it has lost is zero. Refused with the
//  file's name: any other that has become shorter (invalid_argument), one that has changed while
//  the branch had commits by another engine, another file in its place after a crash, and a file
//  with content for a branch with other content (already_exists). An empty file is filled from the
//  branch.
//  - Nobody else may write the file while the region is open (it is locked by flock(2),
//  Errc::busy). A program that cuts it shorter meanwhile brings SIGBUS. On tmpfs reading a hole
//  takes a page, and SIGBUS comes when there is none.
//  - Versions that are read-only open by another engine.
//
// ThreadSanitizer: an atomic operation stronger than relaxed that faults (a page that is not
// present; under engine sigsegv also the first write after a commit) waits for ever, because TSan
// holds a lock over it that the fault handler needs. Use relaxed ones, or engine uffd and
// prefetch().
//
// fork(): a child does not have the region (MADV_DONTFORK): touching it there is a plain SIGSEGV.
// Nor has it the branch's lock: when the parent is killed, the branch is free.
//
// A store that is moved while a region is open, or whose place another directory takes: commits
// throw Errc::io, which names the file, and change nothing in either. When it is back at its place,
// they go on.
#ifndef VELLUM_REGION_HPP
#define VELLUM_REGION_HPP

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <vellum/encoding.hpp>
#include <vellum/error.hpp>
#include <vellum/tracker.hpp>

namespace vellum {

// How pages come in and writes are noticed.
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
  // Address space to reserve, so that grow() can work in place. 0: the larger of 4 times the region
  // and 64 GiB for a writable region, just the region for a read-only one. Costs nothing until
  // touched.
  std::uint64_t capacity_bytes = 0;
  // Pointers into the region stay valid from one opening to the next: the store remembers the
  // address of the first opening (or `base_address`, when it is not 0: a multiple of 2 MiB) and
  // maps there or throws Errc::busy. Without this the remembered address is tried first and another
  // one taken when it is not free.
  bool fixed_address = false;
  std::uint64_t base_address = 0;
  // The range of `capacity_bytes` at `base_address`, both multiples of 4096, is the caller's, who
  // has reserved it (mmap(2) with PROT_NONE) and will unmap it: the region replaces what is mapped
  // there, does not go past it, and leaves it reserved at close(). The store does not remember the
  // address.
  bool over_reservation = false;
  // The plain file that engine `mapped` maps; naming one chooses that engine. Empty: where it was
  // the last time, or else a file in the store. See "Engine mapped" above.
  std::string image_path;
  // The file at `image_path` is what the region opens with, whatever the branch had: also where it
  // is empty, is shorter, or is another file than before a crash, which are filled, refused and
  // refused without this. A file that is missing is made from the branch all the same. For a
  // program whose files are watched: it may remove its file and make it anew.
  bool image_is_content = false;
  // Threads that help commit() to encode, beside the caller. -1: one less than the processors, at
  // most 7.
  int encode_threads = -1;
  // How much memory the region may use: committed copies and private ones together. 0: it shares a
  // limit with the other regions of the process: three quarters of what its cgroup or the machine
  // has, less 64 MiB, at least half. VELLUM_MEMORY_LIMIT=BYTES says otherwise. See "Memory".
  std::uint64_t memory_limit_bytes = 0;
  // Where pages go that were written, are not committed, and have no room in memory: a directory,
  // best on a fast disk. Empty: the store's. The file there has no name, and is gone with the
  // process.
  std::string stash_directory;
  // How much one fault brings in, and one eviction takes out: a power of two from 4096 to 262144;
  // 0: 65536. Less suits single words at random places of a region larger than memory, as far as
  // its blocks are small, too (Encoding::block_bytes): whole blocks are decompressed. More gains
  // little: reading in order is read ahead. Engine mapped leaves it to the kernel.
  std::uint32_t fault_bytes = 0;
  // For versions that are open to read: what prefetch() brings in goes into huge pages of 2 MiB,
  // where its range covers them, and no 64 KiB of them are all zero (fault_bytes, to be exact).
  // Following pointers at random gets faster (1.8 times in 1 GiB; reading in order does not),
  // prefetch() slower (0.6 s for 1 GiB). They stay in memory until close(): half of the memory
  // limit at most. Needs Linux 6.1; without it, and in branches, nothing happens: there the kernel
  // gives each page that is written a copy of its own.
  bool huge_pages = false;
  // How what this region commits is stored. Without a value: as the branch was made, or as the
  // store says (StoreOptions). Kept when the branch is made with it; else for this opening only.
  std::optional<Encoding> encoding;
  // How commits of a branch find what was stored (vellum/tracker.hpp). With cards, a page that was
  // written before costs nothing to write again after a commit, and commit() looks at marked pages
  // only: for small commits in quick succession. The region lies between 0x200000000000 and
  // 0x300000000000 then, at a multiple of 4 GiB, which holds for base_address, too, and has at most
  // 4 TiB; it does not go with over_reservation. Engine mapped finds pages besides, as
  // cards_and_pages does.
  Tracker tracker = Tracker::pages;
  // Compare marks with what has changed, at each commit: a store that nobody marked is
  // Errc::damaged, with the page's number and address. For tests. VELLUM_VERIFY_CARDS=1 says the
  // same.
  bool verify_cards = false;
  // Remember at close() which pages were touched, and bring them in at the next opening of the same
  // branch or version with this option: a thread of the library's begins with the opening, which
  // does not wait, and takes them in the order in which they first came in, as far as half of the
  // memory limit. Nothing else leaves memory for them. What this use does not touch is forgotten at
  // its close(), by chunks of 64 KiB.
  //  - Cost: memory for what comes in and is not touched; a thread's time beside the program's, so
  //    it pays with a processor to spare; a file of some bytes for each stretch of pages, in the
  //    store (its directory `hints`), at each close(), also of a version that is only read; 4 bytes
  //    for each 64 KiB of what is touched. A chunk that came in so is mapped when it is touched.
  //  - The file is a hint: damaged or missing, of no consequence. It is not flushed, and not
  //    written where the store cannot be written, after a crash, or in a fork. Of several who use
  //    the same version, the last to close is remembered. It goes with its branch or version.
  //  - Engine mapped leaves it to the kernel, and ignores this.
  bool working_set = false;
  // Give back what nothing needs any more while the region writes, as Store::collect_garbage()
  // does, and beside everybody: whenever packs have grown by 32 MiB, or by a fifth of what versions
  // need, if that is more, and at close(). So a program that rewrites its region for months, or
  // makes snapshots and removes them, takes at most 1.3 times what is needed, and 64 MiB.
  //  - A thread of the library's does it, and ends with it. It gives back a MiB at a time, between
  //    commits, so a commit seldom meets it: then it waits for that MiB, under a millisecond where
  //    a processor is free. Commits that follow each other without a pause, and write more than it
  //    frees, wait for it: after 12 MiB for 20 ms at most each, after 16 MiB once for a second at
  //    most. close() waits for a second at most. A large commit meanwhile does not look for pages
  //    that the store has already.
  //  - commit() and snapshot() on a full disk collect once and try again before they are
  //    Errc::no_space; commit_async() and snapshot_async() collect for the next.
  //  - What goes wrong there is told on standard error, once for a region, and is no error of a
  //    commit. Several who write one store take turns.
  bool background_gc = true;
};

// What a program says of a range: see Region::advise().
enum class Advice : unsigned char {
  normal,      // reading in order is noticed, and read ahead of
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
  bool folded = false;              // went to packs, with the journal's earlier commits
  // Time of each stage, in order; together they are total_ns.
  std::uint64_t scan_ns = 0;     // the tracker finds and re-arms dirty pages
  std::uint64_t encode_ns = 0;   // compare, compress
  std::uint64_t write_ns = 0;    // write(2)
  std::uint64_t flush_ns = 0;    // fdatasync(2)
  std::uint64_t publish_ns = 0;  // the committed copies in memory follow
  std::uint64_t total_ns = 0;
  // Of commit_async() and snapshot_async(): how long the call took. The stages go on after it.
  std::uint64_t pause_ns = 0;
};

// What a region has in memory now, which is counted page by page (0.5 to 4 ms for 1 GiB), and what
// went out of it since it was opened.
struct MemoryUse {
  std::uint64_t limit_bytes = 0;     // of the region, or of the process when it has none of its own
  std::uint64_t resident_bytes = 0;  // committed copies and private ones
  std::uint64_t evicted_bytes = 0;   // all that ever left
  std::uint64_t stashed_pages = 0;   // written, not committed, and not in memory
  std::uint64_t stash_file_bytes = 0;     // what the file of the stash occupies
  std::uint64_t stash_written_bytes = 0;  // all that was ever written to it
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

struct ByteRange {
  std::uint64_t offset_bytes = 0;
  std::uint64_t length_bytes = 0;
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
  Engine engine() const noexcept;  // what is in use: never automatic
  std::string name() const;        // the branch, or the version that was opened
  std::uint64_t sequence() const;  // of the last commit

  // Makes everything stored since the last commit durable, as one step. Nothing to do is cheap, and
  // no new version. Errors: no_space, io: the commit has not happened, the last one stays, memory
  // is as it was, a later commit() takes everything along. poisoned: a flush failed now or earlier;
  // reopen the branch. read_only.
  CommitReport commit(const std::string& message = std::string());

  // commit() for who knows where it has stored: only there is looked, which saves finding it, a
  // scan of the whole region. Whole pages count; ranges may overlap. A store elsewhere is in the
  // next commit() or snapshot(), or in the next of these that names it. invalid_argument for a
  // range that does not lie in the region. With tracker cards the marks count instead.
  CommitReport commit_ranges(const std::vector<ByteRange>& written,
                             const std::string& message = std::string());

  // Pages that are as the last commit has them need no copies of this region's own: with engine
  // mapped they are the image's again, in the page cache, and their memory is free; with the others
  // nothing happens. REQUIRES: nothing in these ranges was stored to since the last commit, nor is
  // meanwhile. invalid_argument for a range that does not lie in the region.
  void drop_copies(const std::vector<ByteRange>& ranges);

  // commit(), then keeps that state under `name`, which nobody else can take meanwhile.
  // already_exists (nothing is committed then), busy (for long, somebody else has been making or
  // removing that name; nothing is committed), invalid_argument for a malformed name: 1..200 bytes
  // of letters, digits and . _ + - (or UTF-8), not starting with '.' or '-'.
  CommitReport snapshot(const std::string& name, const std::string& message = std::string());

  // The same, but only what was written is found and copied in the call; what the caller stores
  // after it is not in. Compressing, writing and flushing go on in a thread of the region's own:
  // the future gives what commit() would return, or throws what it would throw, and what failed is
  // in the next commit as ever. What the call itself throws: invalid arguments, and what keeps it
  // from beginning. Pages that lie in the stash are encoded in the call. The next call that changes
  // the region, and close(), wait for the end; the future need not be waited for, nor kept, and
  // outlives the region. After fork(), a child must not wait for a future of its parent.
  std::future<CommitReport> commit_async(const std::string& message = std::string());
  std::future<CommitReport> snapshot_async(const std::string& name,
                                           const std::string& message = std::string());

  // Forgets everything stored since the last commit: O(pages dirty). REQUIRES: no other thread uses
  // the region meanwhile.
  void rollback();

  // Makes the region larger; new bytes are zero, and durable with the next commit. Rounded up to
  // pages. invalid_argument beyond capacity_bytes() or below the current size. rollback() takes it
  // back.
  void grow(std::uint64_t size_bytes);

  // The size of the plain file that the region stands for: what Store::export_file() writes, and
  // what an image has. size_bytes(), unless resize_file() or Store::import_file() has said
  // otherwise, or another program has given the image another size.
  std::uint64_t file_bytes() const noexcept;
  // Says so; durable with the next commit(), and taken back by rollback(). More than size_bytes():
  // the region grows, as by grow(), and by `room_bytes` more: a file that is appended to, a little
  // at a time, need not make the region larger each time. Less than before: what lies behind
  // becomes zero at once, like clear(), and the region keeps its size. invalid_argument beyond
  // capacity_bytes().
  //  - From then on the size belongs to each version. grow() gives the file the region's size; a
  //    store behind its end makes it longer at the next commit(), to the end of the page.
  //  - Engine mapped: the image has exactly this size, at once when it becomes longer, and with the
  //    next commit when it becomes shorter. Pages of the region that lie behind it whole cannot be
  //    touched (SIGBUS), until the file is longer again.
  void resize_file(std::uint64_t bytes, std::uint64_t room_bytes = 0);

  // Brings a range in and keeps it: system calls work on it. Errc::damaged or io when a page cannot
  // be read.
  Pin pin(const void* address, std::size_t length_bytes) const;
  // Brings a range in, without keeping it (but see RegionOptions::huge_pages).
  void prefetch(const void* address, std::size_t length_bytes) const;

  // Makes a range zero, like memset(3); but what is zero already is not written, and what is not in
  // memory and holds nothing is not brought in. For memory that is free again: zeros take no space
  // in a version. read_only; invalid_argument when the range does not lie in the region.
  void clear(void* address, std::size_t length_bytes);

  // What the program will do with a range. It changes what comes in and goes out when, and never
  // what is there: also dont_need keeps every byte, unlike madvise(2). invalid_argument when the
  // range does not lie in the region.
  //  - will_need: a thread of the library's begins to bring the range in, as far as half of the
  //    memory limit; this call does not wait for it. A page that cannot be read is left to who
  //    touches it, or calls prefetch().
  //  - dont_need: chunks of 64 KiB that lie whole in the range's pages leave memory. Those with
  //    pages that are not committed stay, and are the first to go (to the stash) when memory is
  //    short.
  //  - sequential: the first fault reads ahead, up to 2 MiB; what has been passed goes first when
  //    memory is short. random: nothing is read ahead. normal: three faults in chunks that follow
  //    one another read ahead. These three hold until the next of them, or close().
  // Engine mapped leaves it to the kernel: madvise(2), with MADV_COLD for dont_need.
  void advise(const void* address, std::size_t length_bytes, Advice advice) const;

  MemoryUse memory_use() const;

  // Unmaps. What was not committed is lost. The region is not valid() afterwards.
  void close();
  // close(), but the memory stays where it is, with what it holds: a mapping of the process's own
  // from data() to capacity_bytes(), which the caller has to unmap (munmap(2)). unsupported unless
  // the engine is mapped, whose pages need nobody who serves them.
  void close_and_leave_memory();

  struct Impl;  // src/region/region.cpp
  explicit Region(std::shared_ptr<Impl> impl) noexcept;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace vellum

#endif  // VELLUM_REGION_HPP
