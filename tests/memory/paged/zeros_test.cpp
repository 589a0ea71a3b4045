// Pages that are zero until they are written: a write fills only the pages that it needs.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include "memory/memory_fixture.hpp"

namespace vellum::region::test {
namespace {

class Zeros : public MemoryTest {
 protected:
  static constexpr std::uint64_t kChunks = 64;
  static constexpr std::uint64_t kPages = kChunks * kChunkPages;

  static void write(RegionMemory& memory, PageNumber page, int value = 1) {
    page_at(memory, page)[page % kPageBytes] = static_cast<std::byte>(value);
  }
  static bool is_zero(RegionMemory& memory, PageNumber page) {
    return all_bytes(page_at(memory, page), kPageBytes, 0);
  }
  // Whether a system call can read the page.
  static bool readable(RegionMemory& memory, PageNumber page) {
    const int fd = memfd_create("sink", MFD_CLOEXEC);
    const long n = syscall(SYS_pwrite64, fd, page_at(memory, page), kPageBytes, 0);
    close(fd);
    return n == static_cast<long>(kPageBytes);
  }
};

// The other engines count chunks or files.
class ZerosByPages : public Zeros {};

TEST_P(ZerosByPages, ScatteredWritesUseOnlyTheWrittenPages) {
  const auto memory = make(kPages * kPageBytes);
  std::vector<PageNumber> written;
  for (PageNumber page = 5; page < kPages; page += 2 * kChunkPages) written.push_back(page);
  for (const PageNumber page : written) write(*memory, page);
  EXPECT_EQ(memory->use().resident_bytes, written.size() * kPageBytes);
  EXPECT_EQ(collect(*memory), written);
  EXPECT_TRUE(collect(*memory).empty());
}

TEST_P(ZerosByPages, WritesFarApartInEveryChunkUseOnlyTheWrittenPages) {
  const auto memory = make(kPages * kPageBytes);
  for (PageNumber page = 0; page < kPages; page += kChunkPages) write(*memory, page);
  EXPECT_EQ(memory->use().resident_bytes, kChunks * kPageBytes);
}

TEST_P(ZerosByPages, WritesInOrderUseAtMostOneMoreChunk) {
  const auto memory = make(kPages * kPageBytes);
  for (PageNumber page = 0; page < 10 * kChunkPages + 1; ++page) write(*memory, page);
  EXPECT_EQ(memory->use().resident_bytes, 11 * kChunkBytes);
}

TEST_P(Zeros, PagesAroundASingleWriteAreZero) {
  const auto memory = make(kPages * kPageBytes);
  const PageNumber first = 6 * kChunkPages;
  write(*memory, first + 3);
  collect(*memory);
  for (PageNumber page = first; page < first + kChunkPages; ++page) {
    EXPECT_EQ(is_zero(*memory, page), page != first + 3) << page;
  }
  write(*memory, first + 9);
  EXPECT_TRUE(contains(collect(*memory), first + 9));
}

TEST_P(Zeros, ASecondWriteInAChunkIsFoundAfterAScan) {
  const auto memory = make(kPages * kPageBytes);
  for (const PageNumber first : {PageNumber{0}, 20 * kChunkPages, (kChunks - 1) * kChunkPages}) {
    write(*memory, first + 2);
    collect(*memory);
    write(*memory, first + 7);
    write(*memory, first + 11);
    const auto dirty = collect(*memory);
    for (const PageNumber page : {first + 7, first + 11}) {
      EXPECT_TRUE(contains(dirty, page)) << page;
    }
  }
}

TEST_P(Zeros, PresentPagesAroundASingleWriteServeSystemCalls) {
  const auto memory = make(kPages * kPageBytes);
  const PageNumber first = 6 * kChunkPages;
  for (const bool scanned : {false, true}) {
    const PageNumber at = first + (scanned ? 4 * kChunkPages : 0);
    write(*memory, at + 3);
    if (scanned) collect(*memory);
    store::ReadFailure failure;
    ASSERT_TRUE(memory->make_present(at, kChunkPages, failure)) << failure.reason;
    for (PageNumber page = at; page < at + kChunkPages; ++page) {
      EXPECT_TRUE(readable(*memory, page)) << page << (scanned ? " after a scan" : "");
    }
  }
}

// An eviction that finds a dirty page restores the chunk.
TEST_P(Zeros, PagesAreWritableAfterAnAbandonedEviction) {
  const auto memory = make(kPages * kPageBytes);
  const PageNumber first = 6 * kChunkPages;
  write(*memory, first + 3);
  memory->advise(first, kChunkPages, Advice::dont_need);
  collect(*memory);
  EXPECT_FALSE(is_zero(*memory, first + 3));
  write(*memory, first + 8);
  EXPECT_TRUE(contains(collect(*memory), first + 8));
}

// A rollback skips untouched pages: a later write to one must be found.
TEST_P(Zeros, PagesStayWritableAfterARollback) {
  const auto memory = make(kPages * kPageBytes);
  const PageNumber first = 6 * kChunkPages;
  write(*memory, first + 3);
  collect(*memory);
  memory->discard({first + 2, first + 3, first + 4});
  write(*memory, first + 4);
  EXPECT_TRUE(contains(collect(*memory), first + 4));
  memory->discard({first + 4});
  for (PageNumber page = first; page < first + kChunkPages; ++page) {
    EXPECT_TRUE(is_zero(*memory, page)) << page;
    write(*memory, page);
  }
  const auto dirty = collect(*memory);
  for (PageNumber page = first; page < first + kChunkPages; ++page) {
    EXPECT_TRUE(contains(dirty, page)) << page;
  }
}

TEST_P(Zeros, ARollbackRestoresTheCommittedPageOfAChunk) {
  const auto memory = make(kPages * kPageBytes);
  const PageNumber page = 6 * kChunkPages + 3;
  write(*memory, page, 7);
  commit(*memory);
  write(*memory, page, 9);
  memory->discard(collect(*memory));
  EXPECT_EQ(page_at(*memory, page)[page % kPageBytes], std::byte{7});
  EXPECT_TRUE(is_zero(*memory, page + 1));
}

// The region ends within its last chunk; growth adds the rest of the chunk.
TEST_P(Zeros, PagesOfAPartialLastChunkAreUsableAfterGrowth) {
  const auto memory = make((kChunkPages + 4) * kPageBytes, kPages * kPageBytes);
  write(*memory, kChunkPages + 1);
  memory->resize(kPages * kPageBytes);
  for (PageNumber page = kChunkPages; page < 2 * kChunkPages; ++page) {
    EXPECT_TRUE(readable(*memory, page)) << page;
    write(*memory, page);
  }
  const auto dirty = collect(*memory);
  for (PageNumber page = kChunkPages; page < 2 * kChunkPages; ++page) {
    EXPECT_TRUE(contains(dirty, page)) << page;
  }
}

// Writers in random order, concurrent with scans: a later scan finds each page that a scan has
// missed.
TEST_P(Zeros, NoWriteIsLostDuringScans) {
  constexpr std::size_t kThreads = 3;
  const auto memory = make(kPages * kPageBytes);
  std::vector<PageNumber> order(kPages);
  std::iota(order.begin(), order.end(), PageNumber{0});
  std::mt19937_64 random(7);
  std::shuffle(order.begin(), order.end(), random);
  std::atomic<std::size_t> next{0}, writing{kThreads};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < kPages; i = next++) {
        write(*memory, order[i], 1);
        if (i % 64 == 0) std::this_thread::yield();
      }
      --writing;
    });
  }
  std::vector<bool> found(kPages);
  const auto scan = [&] {
    for (const PageNumber page : collect(*memory)) found[page] = true;
  };
  while (writing != 0) scan();
  for (auto& thread : threads) thread.join();
  scan();
  EXPECT_EQ(std::count(found.begin(), found.end(), false), 0);
}

VELLUM_BOTH_ENGINES(Zeros);
VELLUM_PARTIAL_FILL_ENGINES(ZerosByPages);

}  // namespace
}  // namespace vellum::region::test
