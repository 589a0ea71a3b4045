#include "memory/cards/table.hpp"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/memory/thread_sanitizer.hpp"
#include "base/round_up.hpp"

namespace vellum::cards {
namespace {

// A mapping by another copy of this code is as good. MAP_NORESERVE: the sizes are those of the
// whole window, and only touched pages take memory.
bool map_there(std::uint64_t address, std::uint64_t bytes) {
  if (!base::may_map_at(address)) return false;
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
  fail(Errc::unsupported, "card tracking needs 260 GiB of address space, which costs no memory: {}",
       std::strerror(error));
}

// One of the table's parts. It is unmapped again unless all parts are available.
class Mapped {
 public:
  Mapped() = default;
  ~Mapped() {
    if (bytes_ != 0) munmap(reinterpret_cast<void*>(address_), bytes_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  bool map(std::uint64_t address, std::uint64_t bytes) {
    if (!map_there(address, bytes)) return false;
    address_ = address;
    bytes_ = bytes;
    return true;
  }
  void keep() noexcept { bytes_ = 0; }

 private:
  std::uint64_t address_ = 0, bytes_ = 0;
};

[[noreturn]] void refuse_addresses() {
  fail(Errc::unsupported,
       "card tracking needs the addresses from 0x340000000000, which are in use: by a "
       "sanitizer, or by another version of Vellum");
}

// Reads by the kernel: the memory there may be other code's, and inaccessible. 0: not ours.
std::uint64_t layout_at(vellum_card_directory* directory) {
  std::uint64_t layout = 0;
  const iovec to{&layout, sizeof layout}, from{&directory->layout, sizeof directory->layout};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof layout ? layout : 0;
}

// The directory is mapped last: code that finds it finds the whole table.
void map_table() {
  constexpr std::uint64_t kWindowBytes = kWindowEnd - kWindowBegin;
  constexpr std::uint64_t kDirectoryBytes =
      base::round_up(sizeof(vellum_card_directory), kPageBytes);
  auto* directory = reinterpret_cast<vellum_card_directory*>(VELLUM_DIRECTORY);
  const auto cards = reinterpret_cast<std::uint64_t>(vellum_card_of(kWindowBegin));
  Mapped first, second, third;
  if (first.map(cards, kWindowBytes / kCardBytes)) {
    if (second.map(VELLUM_PAGE_TABLE, kWindowBytes / kPageBytes) &&
        third.map(VELLUM_DIRECTORY, kDirectoryBytes)) {
      first.keep(), second.keep(), third.keep();
      __atomic_store_n(&directory->layout, VELLUM_CARD_LAYOUT, __ATOMIC_RELEASE);
      return;
    }
    refuse_addresses();
  }
  if (layout_at(directory) != VELLUM_CARD_LAYOUT) refuse_addresses();
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

}  // namespace

void reserve_table() {
  static std::mutex mutex;
  // No once_flag: it hangs under ThreadSanitizer once this has thrown.
  static bool reserved = false;
  const std::lock_guard lock(mutex);
  if (!reserved) map_table();
  reserved = true;
}

}  // namespace vellum::cards
