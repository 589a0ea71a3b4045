// vellum/region_options.hpp: how a region is opened. The defaults serve most programs.
#ifndef VELLUM_REGION_OPTIONS_HPP
#define VELLUM_REGION_OPTIONS_HPP

#include <cstdint>
#include <optional>
#include <string>

#include <vellum/encoding.hpp>
#include <vellum/mapped.hpp>
#include <vellum/tracker.hpp>

namespace vellum {

// How pages are loaded and how writes are detected.
enum class Engine {
  automatic,  // uffd; where the kernel does not offer or permit it, sigsegv, with a one-line notice
              // on standard error
  uffd,       // userfaultfd(2), SIGBUS mode + write protection (Linux 5.19; fastest from 6.7 on)
  sigsegv,    // mprotect(2) and SIGSEGV, as in Privateer 2.0 (HPEC 2022): any Linux, 4.5 us per
              // written page
  mapped,     // a private mapping of a plain file that holds the last commit, as in Privateer 1.0
              // (CLUSTER 2021): vellum/mapped.hpp
};
const char* engine_name(Engine engine) noexcept;

struct RegionOptions {
  Engine engine = Engine::automatic;  // the environment variable VELLUM_ENGINE=uffd|sigsegv|
                                      // mapped overrides `automatic`
  // The plain file of engine mapped; a path selects that engine.
  ImageOptions image;
  // The encoding of this region's commits. Without a value: the branch's, or else the store's
  // (StoreOptions). The value is stored with a branch that is created with it; otherwise it applies
  // to this opening only.
  std::optional<Encoding> encoding;

  // ---- Addresses

  // Address space to reserve, so that grow() works in place. 0: for a writable region the larger of
  // 4 times the region and 64 GiB, or less where the process is limited (ulimit -v, -d, -f;
  // Region::capacity_bytes()); for a read-only one the size of the region. It costs nothing until
  // it is touched.
  std::uint64_t capacity_bytes = 0;
  // Pointers into the region stay valid from one opening to the next: the store remembers the
  // address of the first opening (or `base_address`, when it is not 0: a multiple of 2 MiB), and
  // the region is mapped at that address, or Errc::busy is thrown. Without this option an opening
  // tries the remembered address first, and uses another one when it is not free.
  bool fixed_address = false;
  std::uint64_t base_address = 0;
  // The caller has reserved the range of `capacity_bytes` at `base_address`, both multiples of 4096
  // (mmap(2) with PROT_NONE), and will unmap it. The region replaces the mappings there, stays
  // within the range, and leaves it reserved at close(). The store does not remember the address.
  bool over_reservation = false;

  // ---- Memory

  // The memory that the region may use, for base copies and the program's copies together. 0: it
  // shares a limit with the other regions of the process: three quarters of the memory of its
  // cgroup or the machine, less 64 MiB, at least half; VELLUM_MEMORY_LIMIT=BYTES replaces it. In
  // addition, each open store caches decompressed records, up to a tenth of that limit, 250 to 800
  // MiB. Pinned pages may exceed the limit (Region::pin()).
  std::uint64_t memory_limit_bytes = 0;
  // The directory of the spill file: dirty pages beyond the memory limit. A fast disk is best.
  // Empty: the store's directory. The file has no name (open(2), O_TMPFILE) and ends with the
  // process.
  std::string spill_directory;
  // The chunk: the unit of loading by a fault and of eviction, a power of two from 4096 to 262144;
  // 0: 65536. A smaller value suits random access to single words of a region larger than memory,
  // if its blocks are small too (Encoding::block_bytes), because blocks are decompressed whole. A
  // larger value gains little, because sequential reading is read ahead.
  std::uint32_t fault_bytes = 0;
  // Record at close() which pages were touched, and load them at the next opening of the same
  // branch or version with this option, in a library thread. The cost: docs/guides/regions.md,
  // Working sets.
  bool working_set = false;
  // Free the second copies of written pages that have gone cold (vellum/region.hpp), in a library
  // thread. Disable it for a program whose threads block SIGSEGV, or store to the region in a
  // handler of it: a store to a page whose copy is being freed would end the process.
  bool give_back_copies = true;
  // With engine uffd: a library thread serves page faults, instead of handlers of SIGBUS and
  // SIGSEGV in the faulting thread. For programs whose other parts install handlers of these
  // signals, or block them, and for programs that pass pages that are not in memory to system
  // calls: where the process has the privilege (CAP_SYS_PTRACE, the sysctl
  // vm.unprivileged_userfaultfd, or access to /dev/userfaultfd), a system call waits for the pages
  // that it touches (Region::serves_system_calls()). The cost is a context switch at each fault,
  // some 50 us, and second copies are not freed. With other engines it has no effect.
  bool fault_thread = false;
  // For versions that are open to read: prefetch() moves pages into huge pages of 2 MiB, which are
  // not evicted. For random pointer chasing; docs/guides/regions.md, Huge pages. In branches it has
  // no effect.
  bool huge_pages = false;
  // For versions that are open to read: processes of one user that open the same version with this
  // option share its pages. The first process that touches a page loads it for all, so many readers
  // cost the memory and the time of one. The pages are in a file in /dev/shm that is removed with
  // the last reader. A region that cannot share has pages of its own, without an error;
  // MemoryUse::shared_bytes shows it. Not with huge_pages. In branches it has no effect.
  // docs/guides/operating.md, Readers that share.
  bool share = false;

  // ---- Commits

  // Threads that help commit() to encode, in addition to the caller. -1: one less than the
  // processors, at most 7.
  int encode_threads = -1;
  // How commits of a branch find the stores (vellum/tracker.hpp). For small commits in quick
  // succession, use cards: after a commit, writing a page again costs nothing if it was written
  // before, and commit() reads marked pages only. The region is then mapped between 0x200000000000
  // and 0x300000000000, at a multiple of 4 GiB (base_address too), and has at most 4 TiB; cards and
  // over_reservation exclude each other. Engine mapped also finds pages, as cards_and_pages does.
  Tracker tracker = Tracker::pages;
  // Compare marks with the changed bytes at each commit: an unmarked store is Errc::corrupted, with
  // the page's number and address. For tests: it is slow. VELLUM_VERIFY_CARDS=1 has the same
  // effect.
  bool verify_cards = false;
  // Collect garbage in the background while the region is written and at close(), as
  // Store::collect_garbage() does, concurrently with all readers and writers: the store stays under
  // 1.3 times its live data plus 64 MiB. On a full disk commit() and snapshot() collect once and
  // try again before they throw Errc::no_space. When it runs, and which calls wait for it:
  // docs/guides/regions.md, Space.
  bool background_gc = true;
};

}  // namespace vellum

#endif  // VELLUM_REGION_OPTIONS_HPP
