// Eviction moves private pages by mremap(2). Before Linux 6.12.11 it moves the markers of
// userfaultfd's write protection, too (CVE-2025-21696), and a marker looks like a page that is
// swapped out. Here mremap() does what those kernels do.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <mutex>
#include <shared_mutex>

#include "memory/kernel/kernel.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

// While it lives, mremap() also moves markers. Eviction calls mremap() in a thread of its own, so
// calls hold `in_use`, and it lives at least as long as each of them.
class OldMremap {
 public:
  OldMremap()
      : uffd_(region::open_userfaultfd(region::Tracking::synchronous)),
        pagemap_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
    const std::unique_lock lock(in_use);
    current = this;
  }
  ~OldMremap() {
    const std::unique_lock lock(in_use);
    current = nullptr;
    for (const int fd : {uffd_, pagemap_}) close(fd);
  }
  OldMremap(const OldMremap&) = delete;
  OldMremap& operator=(const OldMremap&) = delete;

  void* move(void* from, std::size_t old_bytes, std::size_t new_bytes, int flags, void* to) {
    const Lines lines = lines_of(from, old_bytes / kPage);
    void* const moved =
        reinterpret_cast<void*>(syscall(SYS_mremap, from, old_bytes, new_bytes, flags, to));
    if (moved == MAP_FAILED || region::register_writes(uffd_, moved, old_bytes) != 0) return moved;
    ++moves;
    for (std::size_t i = 0; i < old_bytes / kPage; ++i) {
      if (!is_marker(lines[i])) continue;
      ++markers;
      region::arm(uffd_, static_cast<std::byte*>(moved) + i * kPage, kPage);
    }
    return moved;
  }

  std::atomic<int> moves{0}, markers{0};
  static inline std::shared_mutex in_use;
  static inline OldMremap* current = nullptr;  // REQUIRES: in_use

 private:
  using Lines = std::array<std::uint64_t, 64>;
  Lines lines_of(const void* at, std::size_t pages) const {
    Lines lines{};
    const auto offset = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(at) / kPage * 8);
    EXPECT_EQ(pread(pagemap_, lines.data(), pages * 8, offset), static_cast<ssize_t>(pages * 8));
    return lines;
  }
  static bool is_marker(std::uint64_t line) {
    constexpr std::uint64_t kArmed = 1ULL << 57, kFile = 1ULL << 61, kSwapped = 1ULL << 62;
    return (line & (kArmed | kFile | kSwapped)) == (kArmed | kSwapped);
  }

  const int uffd_, pagemap_;
};

class MovedMarkers : public StoreTest {
 protected:
  static constexpr std::uint64_t kLimit = 1 * kMiB;
  Region make_limited(Store& store, std::uint64_t pages) const {
    RegionOptions limited = options();
    limited.memory_limit_bytes = kLimit;
    return store.create_region("main", pages * kPage, limited);
  }
};

// One page of each chunk is dirty, so that there is something to move and to spill.
TEST_P(MovedMarkers, AreNoPagesOfTheProgram) {
  constexpr std::uint64_t kPages = 1024;
  Store store = create();
  Region region = make_limited(store, kPages);
  for (std::uint64_t page = 0; page < kPages; ++page) word_at(region, page * kPage) = page + 1;
  region.commit();
  OldMremap old;
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t page = 0; page < kPages; ++page) {
      ASSERT_EQ(word_at(region, page * kPage), page + 1) << "round " << round;
      if (page % 16 == 5) word_at(region, page * kPage + 8) = page;
    }
  }
  EXPECT_GT(old.moves, 0);
  EXPECT_EQ(old.markers, 0);
  EXPECT_LE(region.commit().pages_changed, kPages / 16);
  const auto content = content_of(store, "main");
  for (std::uint64_t page = 0; page < kPages; ++page) {
    ASSERT_EQ(std::to_integer<unsigned>(content[page * kPage]), (page + 1) % 256);
  }
}

// Of each chunk of zeros only the page that is written is mapped. A commit arms the others.
TEST_P(MovedMarkers, AreNoPagesOfZeros) {
  constexpr std::uint64_t kPages = 8192;
  Store store = create();
  Region region = make_limited(store, kPages);
  OldMremap old;
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t page = 0; page < kPages; page += 16) word_at(region, page * kPage) = 1;
    region.commit();
    for (std::uint64_t page = 0; page < kPages; page += 16) word_at(region, page * kPage) = 0;
    region.commit();
    for (std::uint64_t page = 0; page < kPages; ++page) {
      ASSERT_EQ(word_at(region, page * kPage), 0u) << "round " << round;
    }
  }
  EXPECT_GT(old.moves, 0);
  EXPECT_EQ(old.markers, 0);
  EXPECT_EQ(region.commit().pages_changed, 0u);
}

VELLUM_PARTIAL_FILL_ENGINES(MovedMarkers);

}  // namespace
}  // namespace vellum::test

extern "C" void* mremap(void* from, size_t old_bytes, size_t new_bytes, int flags, ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  using vellum::test::OldMremap;
  const std::shared_lock lock(OldMremap::in_use);
  if (OldMremap* const old = OldMremap::current; old != nullptr) {
    return old->move(from, old_bytes, new_bytes, flags, to);
  }
  return reinterpret_cast<void*>(syscall(SYS_mremap, from, old_bytes, new_bytes, flags, to));
}
