// Threads store all over a region while another one commits.
#include <atomic>
#include <random>
#include <thread>

#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

// For any other order ThreadSanitizer holds a lock of its own over the access, and the fault
// handler would wait for it.
constexpr auto kRelaxed = std::memory_order_relaxed;

std::atomic_ref<std::uint64_t> counter_at(const Region& region, std::uint64_t offset_bytes) {
  return std::atomic_ref(word_at(region, offset_bytes));
}

class Threads : public StoreTest {};

// Privateer (github.com/LLNL/Privateer at dcb5a80) writes a block out and protects it only then:
// stores in between are in no version.
TEST_P(Threads, ThreadsWriteDuringCommits) {
  constexpr std::uint64_t kPages = 2000;
  constexpr std::uint64_t kWriters = 3;
  Store store = create();
  {
    Region region = store.create_region("main", kPages * kPage, options());
    std::atomic<bool> stop{false};
    std::vector<std::thread> writers;
    for (std::uint64_t t = 0; t < kWriters; ++t) {
      writers.emplace_back([&, t] {
        std::mt19937_64 random(t);
        while (!stop.load(std::memory_order_relaxed)) {
          const std::uint64_t page = random() % 3 == 0 ? random() % kPages : random() % 16;
          counter_at(region, page * kPage + t * 512 + random() % 4 * 8).fetch_add(1, kRelaxed);
        }
      });
    }
    for (int i = 0; i < rounds(150, 20); ++i) {
      if (i % 10 == 9) {
        region.snapshot("s" + std::to_string(i));
      } else {
        region.commit();
      }
    }
    stop = true;
    for (auto& writer : writers) writer.join();
    region.commit();
    const auto expected = content_of(region);
    EXPECT_TRUE(content_of(store, "main") == expected);
    region.close();
    EXPECT_TRUE(content_of(store.open_region("main", options())) == expected);
  }
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

// A commit has every store before the call: a counter is committed no smaller than it was before
// the call, and no larger than it is after.
TEST_P(Threads, ACommitHasEveryEarlierStore) {
  constexpr std::uint64_t kPages = 64;
  Store store = create();
  Region region = store.create_region("main", kPages * kPage, options());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      counter_at(region, i * 7 % kPages * kPage + 64).fetch_add(1, kRelaxed);
    }
  });
  std::vector<std::uint64_t> before(kPages);
  for (int round = 0; round < rounds(100, 20); ++round) {
    for (std::uint64_t page = 0; page < kPages; ++page) {
      before[page] = counter_at(region, page * kPage + 64).load(kRelaxed);
    }
    region.commit();
    std::vector<std::byte> committed(kPages * kPage);
    store.read("main", 0, committed.data(), committed.size());
    for (std::uint64_t page = 0; page < kPages; ++page) {
      std::uint64_t seen = 0;
      std::memcpy(&seen, committed.data() + page * kPage + 64, sizeof seen);
      ASSERT_GE(seen, before[page]) << page;
      ASSERT_LE(seen, counter_at(region, page * kPage + 64).load(kRelaxed)) << page;
    }
  }
  stop = true;
  writer.join();
}

// In Privateer the second thread that faults on a block finds it present, and opens it for stores
// that are not recorded.
TEST_P(Threads, ThreadsTouchColdChunksAtOnce) {
  constexpr std::uint64_t kPages = 4096;
  constexpr std::size_t kThreads = 8;
  Store store = create();
  {
    Region region = store.create_region("main", kPages * kPage, options());
    for (std::uint64_t page = 0; page < kPages; ++page) {
      if (page / 40 % 3 != 0) word_at(region, page * kPage + 8) = page;
    }
    region.snapshot("s");
  }
  for (int round = 0; round < rounds(5, 2); ++round) {
    Region region = store.open_region("main", options());
    Region version = store.open_version("s", options());
    std::atomic<std::uint64_t> wrong{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t page = 0; page < kPages; ++page) {
          const std::uint64_t expected = page / 40 % 3 != 0 ? page : 0;
          if (counter_at(region, page * kPage + 8).load(kRelaxed) != expected) ++wrong;
          if (counter_at(version, page * kPage + 8).load(kRelaxed) != expected) ++wrong;
          counter_at(region, page * kPage + 1024 + t * 8).store(page + t, kRelaxed);
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0u);
    region.commit();
    EXPECT_TRUE(content_of(store, "main") == content_of(region));
    for (std::uint64_t page = 0; page < kPages; ++page) {
      for (std::uint64_t t = 0; t < kThreads; ++t) {
        ASSERT_EQ(word_at(region, page * kPage + 1024 + t * 8), page + t);
        word_at(region, page * kPage + 1024 + t * 8) = 0;
      }
    }
    region.commit();
  }
}

TEST_P(Threads, MemberFunctionsAreSerialized) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> commits{0};
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 20; ++i) {
        counter_at(region, t * kPage).store(i + 1, kRelaxed);
        if (i % 5 == t) {
          region.snapshot("t" + std::to_string(t) + "-" + std::to_string(i));
        } else {
          region.commit();
        }
        if (t == 0 && i % 6 == 0) region.grow(kMiB + i * kPage);
        const Pin pin = region.pin({t * kPage, kPage});
        region.prefetch({0, kMiB});
        commits = region.sequence();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  region.close();
  Region again = store.open_region("main", options());
  for (std::uint64_t t = 0; t < 4; ++t) EXPECT_EQ(word_at(again, t * kPage), 20u);
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

TEST_P(Threads, ThreadsOfSeveralRegionsAreIndependent) {
  Store store = create();
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = "r" + std::to_string(t);
      store.create_region(name, kMiB, options()).close();
      for (std::uint64_t i = 1; i <= 20; ++i) {
        Region region = store.open_region(name, options());
        EXPECT_EQ(word_at(region, 0), i - 1);
        word_at(region, 0) = i;
        word_at(region, i * 8 * kPage) = i;
        region.snapshot(name + "-" + std::to_string(i));
        Region version = store.open_version(name + "-" + std::to_string((i + 1) / 2), options());
        EXPECT_EQ(word_at(version, 0), (i + 1) / 2);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store.versions().size(), 84u);
}

VELLUM_BOTH_ENGINES(Threads);

}  // namespace
}  // namespace vellum::test
