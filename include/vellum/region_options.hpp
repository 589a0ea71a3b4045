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

// How pages come in and how writes are noticed.
enum class Engine {
  automatic,  // uffd; where the kernel does not offer or permit it, sigsegv, with a one-line notice
              // on standard error
  uffd,       // userfaultfd(2), SIGBUS mode + asynchronous write protection (Linux 6.7 and later)
  sigsegv,  // mprotect(2) and SIGSEGV, as in Privateer 2.0 (HPEC 2022): any Linux, 4.5 us a written
            // page
  mapped,   // a private mapping of a plain file that holds the last commit, as in Privateer 1.0
            // (CLUSTER 2021): vellum/mapped.hpp
};
const char* engine_name(Engine engine) noexcept;

struct RegionOptions {
  Engine engine = Engine::automatic;  // the environment variable VELLUM_ENGINE=uffd|sigsegv|
                                      // mapped overrides `automatic`
  // The plain file of engine mapped; a path chooses that engine.
  ImageOptions image;
  // How this region's commits are stored. Without a value: as the branch was made, or as the store
  // says (StoreOptions). A value is kept when the branch is made with it; otherwise it holds for
  // this opening only.
  std::optional<Encoding> encoding;

  // ---- Addresses

  // Address space to reserve, so that grow() can work in place. 0: for a writable region the larger
  // of 4 times the region and 64 GiB, or less where the process is limited (ulimit -v, -d, -f;
  // Region::capacity_bytes()), for a read-only one just the region. It costs nothing until
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

  // ---- Memory

  // The memory that the region may use: committed copies and private ones together. 0: it shares a
  // limit with the other regions of the process: three quarters of its cgroup's or the machine's
  // memory, less 64 MiB, at least half; VELLUM_MEMORY_LIMIT=BYTES replaces it. Beside the regions,
  // each open store keeps up to a tenth of that limit of what it has decompressed, 250 to 800 MiB.
  std::uint64_t memory_limit_bytes = 0;
  // The directory for written, uncommitted pages that have no room in memory, best on a fast disk.
  // Empty: the store's. The file there has no name, and goes with the process.
  std::string spill_directory;
  // How much one fault brings in and one eviction takes out: a power of two from 4096 to 262144;
  // 0: 65536. A smaller value suits single words at random places of a region larger than memory,
  // if its blocks are small too (Encoding::block_bytes), because blocks are decompressed whole. A
  // larger value gains little, as reading in order is read ahead.
  std::uint32_t fault_bytes = 0;
  // Remember at close() which pages were touched, and bring them in at the next opening of the same
  // branch or version with this option, in a library thread. The price: docs/guides/regions.md,
  // Working sets.
  bool working_set = false;
  // Give back the second copies of written pages that rest (vellum/region.hpp), in a library thread.
  // Switch it off for a program whose threads block SIGSEGV, or store to the region in a handler of
  // it: a store to such a page at that moment would end the process.
  bool give_back_copies = true;
  // With engine uffd: a library thread answers page faults, instead of handlers of SIGBUS and SIGSEGV
  // in the thread that faults. For programs whose other parts install handlers of these signals, or
  // block them, and for programs that pass absent pages to system calls: where the process may have
  // it (CAP_SYS_PTRACE, the sysctl vm.unprivileged_userfaultfd, or access to /dev/userfaultfd), a
  // system call waits for the pages that it touches (Region::serves_system_calls()). The price is a
  // switch of threads at each fault, some 50 us, and copies are not given back. With other engines
  // it has no effect.
  bool fault_thread = false;
  // For versions that are open to read: prefetch() puts pages into huge pages of 2 MiB, which stay.
  // For following pointers at random; docs/guides/regions.md, Huge pages. In branches nothing
  // happens.
  bool huge_pages = false;
  // For versions that are open to read: processes of one user that open the same version with this
  // option share its pages. Whoever touches a page first brings it in for all, so many readers take
  // the memory and the time of one. The pages lie in a file in /dev/shm that goes with the last
  // reader. A region that cannot share says nothing, and has pages of its own; MemoryUse::shared_bytes
  // tells. Not with huge_pages. In branches nothing happens. docs/guides/operating.md, Readers that
  // share.
  bool share = false;

  // ---- Commits

  // Threads that help commit() to encode, beside the caller. -1: one less than the processors, at
  // most 7.
  int encode_threads = -1;
  // How commits of a branch find the stores (vellum/tracker.hpp). For small commits in quick
  // succession, use cards: after a commit, writing a page again costs nothing if it was written
  // before, and commit() looks at marked pages only. The region then lies between 0x200000000000
  // and 0x300000000000, at a multiple of 4 GiB (base_address too), and has at most 4 TiB; cards and
  // over_reservation exclude each other. Engine mapped also finds pages, as cards_and_pages does.
  Tracker tracker = Tracker::pages;
  // Compare marks with the changed bytes at each commit: an unmarked store is Errc::corrupted, with
  // the page's number and address. For tests. VELLUM_VERIFY_CARDS=1 has the same effect.
  bool verify_cards = false;
  // Give back unneeded space while the region writes and at close(), as Store::collect_garbage()
  // does, beside all readers and writers: the store takes at most 1.3 times the needed space, plus
  // 64 MiB. On a full disk commit() and snapshot() collect once and try again before they throw
  // Errc::no_space. When it runs and what waits for it: docs/guides/regions.md, Space.
  bool background_gc = true;
};

}  // namespace vellum

#endif  // VELLUM_REGION_OPTIONS_HPP
