// No write is lost: in many rounds, threads write while another thread collects.
#include <atomic>
#include <random>
#include <thread>

#include "memory/memory_fixture.hpp"
#include "support/sanitizers.hpp"

namespace vellum::region::test {
namespace {

using Word = std::uint64_t;
constexpr PageNumber kPages = 1024;

std::atomic_ref<Word> word_at(std::byte* base, PageNumber page, std::size_t word) {
  return std::atomic_ref(*reinterpret_cast<Word*>(base + page * kPageBytes + word * sizeof(Word)));
}

class DirtyThreads : public MemoryTest {
 protected:
  // Each thread adds one to its own counter in random pages until `stop`.
  std::vector<std::thread> start_writers(RegionMemory& memory, std::size_t count) {
    std::vector<std::thread> writers;
    for (std::size_t t = 0; t < count; ++t) {
      writers.emplace_back([this, &memory, t] {
        std::mt19937_64 random(t + 1);
        while (!stop_.load(std::memory_order_relaxed)) {
          // Mostly a few hot pages, sometimes any page.
          const PageNumber page = random() % 4 == 0 ? random() % kPages : random() % 8 * 128;
          word_at(memory.data(), page, t).fetch_add(1, std::memory_order_relaxed);
        }
      });
    }
    return writers;
  }

  std::atomic<bool> stop_{false};
};

TEST_P(DirtyThreads, CopiesOfCollectedPagesConverge) {
  const auto memory = make(kPages * kPageBytes);
  std::vector<std::byte> copy(kPages * kPageBytes);
  const auto copy_collected = [&] {
    for (const PageNumber page : collect(*memory)) {
      for (std::size_t word = 0; word < 4; ++word) {
        word_at(copy.data(), page, word) = word_at(memory->data(), page, word).load();
      }
    }
  };
  auto writers = start_writers(*memory, 2);
  for (int round = 0; round < vellum::test::rounds(2000, 100); ++round) copy_collected();
  stop_ = true;
  for (auto& writer : writers) writer.join();
  copy_collected();
  for (PageNumber page = 0; page < kPages; ++page) {
    for (std::size_t word = 0; word < 4; ++word) {
      ASSERT_EQ(word_at(copy.data(), page, word).load(), word_at(memory->data(), page, word).load())
          << "page " << page << ", writer " << word;
    }
  }
}

// The same while chunks are filled: a scan must find a page that is written before its chunk counts
// as present.
TEST_P(DirtyThreads, WritesToChunksBeingFilledAreFound) {
  for (int round = 0; round < vellum::test::rounds(200, 20); ++round) {
    const auto memory = make(kPages * kPageBytes);
    std::vector<char> reported(kPages, 0);
    std::atomic<std::size_t> done{0};
    std::vector<std::thread> writers;
    for (std::size_t t = 0; t < 2; ++t) {
      writers.emplace_back([&, t] {
        for (PageNumber page = t; page < kPages; page += 2 + static_cast<PageNumber>(round) % 7) {
          word_at(memory->data(), page, t).store(page + 1, std::memory_order_relaxed);
        }
        done.fetch_add(1);
      });
    }
    const auto note = [&] {
      for (const PageNumber page : collect(*memory)) reported[page] = 1;
    };
    while (done.load() < writers.size()) note();
    for (auto& writer : writers) writer.join();
    note();
    for (PageNumber page = 0; page < kPages; ++page) {
      const bool written =
          word_at(memory->data(), page, 0).load() + word_at(memory->data(), page, 1).load() != 0;
      ASSERT_TRUE(reported[page] || !written) << "page " << page << " in round " << round;
    }
  }
}

VELLUM_BOTH_ENGINES(DirtyThreads);

}  // namespace
}  // namespace vellum::region::test
