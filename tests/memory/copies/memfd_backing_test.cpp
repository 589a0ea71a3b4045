// Base copies in a memfd, written by several threads at once.
#include "memory/copies/memfd_backing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "memory/kernel/kernel.hpp"
#include "memory/kernel/support.hpp"

namespace vellum::region::test {
namespace {

constexpr std::size_t kPages = 16384, kChunk = 16;

// The content that round `round` writes to a page.
void fill(std::span<std::byte> chunk, std::size_t first, std::size_t round) {
  for (std::size_t i = 0; i < kChunk; ++i) {
    std::memset(chunk.data() + i * kPageBytes, static_cast<int>((first + i) % 251 + round),
                kPageBytes);
  }
}

// Each thread writes every fourth chunk.
void write_all(MemfdBacking& backing, std::size_t round) {
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&backing, t, round] {
      std::vector<std::byte> chunk(kChunk * kPageBytes);
      for (std::size_t first = t * kChunk; first < kPages; first += 4 * kChunk) {
        fill(chunk, first, round);
        EXPECT_EQ(backing.write(first, chunk), 0);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

void expect_all(const MemfdBacking& backing, std::size_t round) {
  std::vector<std::byte> found(kChunk * kPageBytes), expected(kChunk * kPageBytes);
  for (std::size_t first = 0; first < kPages; first += kChunk) {
    fill(expected, first, round);
    ASSERT_EQ(backing.read(first, found), 0);
    ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0) << "page " << first;
    ASSERT_EQ(std::memcmp(backing.base_copy(first), expected.data(), found.size()), 0);
  }
}

TEST(MemfdBacking, PagesOfConcurrentWritersAreAllStored) {
  MemfdBacking backing(kPages * kPageBytes, std::make_shared<Pager>(std::uint64_t{1} << 30));
  // Some pages exist already, in the middle of chunks, too.
  const std::vector<std::byte> old(kPageBytes, std::byte{0xee});
  for (std::size_t page = 0; page < kPages; page += 37) ASSERT_EQ(backing.write(page, old), 0);
  write_all(backing, 1);
  EXPECT_EQ(backing.file_pages(), static_cast<std::int64_t>(kPages));
  expect_all(backing, 1);
  write_all(backing, 2);  // over all of them
  EXPECT_EQ(backing.file_pages(), static_cast<std::int64_t>(kPages));
  expect_all(backing, 2);
}

bool is_alias_mapped(const MemfdBacking& backing) {
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  bool mapped = false;
  for (std::size_t page = 0; page < kPages; page += 64) {
    mapped = mapped || any_mapped(pagemap, backing.base_copy(page), 64);
  }
  close(pagemap);
  return mapped;
}

// While another thread writes, a thread adds pages through the alias. Threads that happen to run in
// sequence do not, so the test makes several attempts.
TEST(MemfdBacking, PagesStayWhenTheAliasIsUnmapped) {
  std::optional<MemfdBacking> backing;
  for (int attempt = 0; attempt < 100 && (!backing || !is_alias_mapped(*backing)); ++attempt) {
    backing.emplace(kPages * kPageBytes, std::make_shared<Pager>(std::uint64_t{1} << 30));
    EXPECT_FALSE(is_alias_mapped(*backing));
    write_all(*backing, 1);
    if (!uffd_engine_works()) break;
  }
  EXPECT_EQ(is_alias_mapped(*backing), uffd_engine_works());
  backing->unmap_alias(0, kPages);
  EXPECT_FALSE(is_alias_mapped(*backing));
  expect_all(*backing, 1);
}

}  // namespace
}  // namespace vellum::region::test
