#include "cards/table.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <vellum/error.hpp>

namespace vellum::cards {
namespace {

// What another copy of this code has mapped is as good. MAP_NORESERVE: the sizes are those of the
// whole window, and only what is touched takes memory.
bool map_there(std::uint64_t address, std::uint64_t bytes) {
  void* at = reinterpret_cast<void*>(address);
  void* got = mmap(at, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == at) {
    madvise(at, bytes, MADV_DONTDUMP);
    return true;
  }
  const int error = got == MAP_FAILED ? errno : EEXIST;  // an old kernel takes it for a hint
  if (got != MAP_FAILED) munmap(got, bytes);
  if (error == EEXIST) return false;
  throw Error(Errc::unsupported,
              std::string("card tracking needs 260 GiB of address space, which costs no memory: ") +
                  std::strerror(error));
}

// The directory comes last: whoever finds it finds all of it.
void map_table() {
  auto* directory = reinterpret_cast<Directory*>(kDirectoryBegin);
  const bool first = map_there(kTableBegin, (kWindowEnd - kWindowBegin) / kCardBytes);
  if (first) {
    map_there(kPageTableBegin, (kWindowEnd - kWindowBegin) / kPageBytes);
    map_there(kDirectoryBegin, (sizeof(Directory) + kPageBytes - 1) / kPageBytes * kPageBytes);
    directory->layout.store(kLayout);
    return;
  }
  unsigned char present = 0;
  const bool there = mincore(directory, kPageBytes, &present) == 0;
  if (there && directory->layout.load() == kLayout) return;
  throw Error(Errc::unsupported,
              "card tracking needs the addresses from 0x340000000000, where something else lies: a "
              "sanitizer's memory, or another version of Vellum");
}

}  // namespace

void reserve_table() {
  static std::once_flag once;
  std::call_once(once, map_table);
}

}  // namespace vellum::cards
