// Advice on a range changes when pages are loaded and evicted, never their content.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "support/paging.hpp"
#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kSize = 16 * kMiB;
constexpr std::uint64_t kWords = kSize / 8;
constexpr std::uint64_t kAdviceChunk = 64u << 10;
constexpr Advice kAll[] = {Advice::normal, Advice::sequential, Advice::random, Advice::will_need,
                           Advice::dont_need};

class Advices : public StoreTest {
 protected:
  static std::uint64_t* words(const Region& region) {
    return static_cast<std::uint64_t*>(region.data());
  }
  static void write_all(const Region& region, std::uint64_t salt = 0) {
    for (std::uint64_t i = 0; i < kWords; ++i) words(region)[i] = mix(i + salt);
  }
  // Snapshot "s" of mixed words.
  Store filled() const {
    Store store = create();
    Region region = store.create_region("main", kSize, options());
    write_all(region);
    region.snapshot("s");
    return store;
  }
  RegionOptions with_limit(std::uint64_t bytes) const {
    RegionOptions o = options();
    o.memory_limit_bytes = bytes;
    return o;
  }
  static std::uint64_t resident(const Region& region) { return region.memory_use().resident_bytes; }
};

class OwnAdvices : public Advices {};  // of the engines that page in and out themselves

TEST_P(Advices, NoAdviceChangesTheContent) {
  Store store = filled();
  for (const Advice advice : kAll) {
    Region region = store.open_region("main", options());
    // Clean and cold; clean and present; dirty; zero since.
    for (std::uint64_t i = kWords / 4; i < kWords / 2; ++i) ASSERT_EQ(words(region)[i], mix(i));
    for (std::uint64_t i = kWords / 2; i < kWords * 3 / 4; i += 700) words(region)[i] = i;
    std::memset(bytes_of(region) + kSize * 3 / 4, 0, kMiB);
    const auto check = [&](int line) {
      for (std::uint64_t i = 0; i < kWords; ++i) {
        const bool stored = i >= kWords / 2 && i < kWords * 3 / 4 && (i - kWords / 2) % 700 == 0;
        const bool cleared = i >= kWords * 3 / 4 && i < kWords * 3 / 4 + kMiB / 8;
        ASSERT_EQ(words(region)[i], stored ? i : cleared ? 0 : mix(i)) << i << " line " << line;
      }
    };
    region.advise({0, kSize}, advice);
    check(__LINE__);
    region.advise({5000, kSize - 10'000}, advice);
    region.advise({5000, 1}, advice);
    check(__LINE__);
    region.rollback();
    ASSERT_EQ(content_of(region), content_of(store, "s"));
  }
}

TEST_P(Advices, ACommitHasTheDirtyPages) {
  Store store = filled();
  for (const Advice advice : kAll) {
    const auto salt = static_cast<std::uint64_t>(advice) + 1;
    Region region = store.open_region("main", options());
    for (std::uint64_t i = 0; i < kWords; i += 300) words(region)[i] = mix(i + salt);
    region.advise({0, kSize}, advice);
    region.commit();
    region.advise({0, kSize}, advice);
    const auto committed = content_of(store, "main");
    ASSERT_EQ(content_of(region), committed);
    for (std::uint64_t i = 0; i < kWords; i += 300) ASSERT_EQ(words(region)[i], mix(i + salt));
  }
}

TEST_P(Advices, RangesOutsideAreRefused) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  for (const Advice advice : kAll) {
    const auto refuse = [&](std::uint64_t offset, std::uint64_t length) {
      expect_error(Errc::invalid_argument, {"main"},
                   [&] { region.advise({offset, length}, advice); });
    };
    refuse(kMiB, 1);
    refuse(0, kMiB + 1);
    refuse(10, ~std::uint64_t{0} - 5);
    refuse(~std::uint64_t{0}, 2);
    region.advise({kMiB, 0}, advice);
    region.advise({0, kMiB}, advice);
  }
  Region moved = std::move(region);
  // NOLINTNEXTLINE(bugprone-use-after-move): what is tested.
  EXPECT_ERRC(region.advise({0, 1}, Advice::normal), Errc::invalid_argument);
}

TEST_P(Advices, AForkHasNoPartInIt) {
  Store store = filled();
  Region region = store.open_region("main", options());
  region.advise({0, kSize}, Advice::will_need);
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      region.advise({0, kSize}, Advice::will_need);
    } catch (const Error& error) {
      status = error.code() == Errc::invalid_argument ? 0 : 2;
    }
    region = Region();
    _exit(status);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (std::uint64_t i = 0; i < kWords; ++i) ASSERT_EQ(words(region)[i], mix(i));
}

// Each writer stores to its own words, while a thread advises and commits without rollbacks.
TEST_P(Advices, WritersContinueDuringAdvice) {
  constexpr std::uint64_t kThreads = 3;
  const int steps = rounds(8, 4);
  Store store = filled();
  Region region = store.open_region("main", with_limit(6 * kMiB));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::vector<std::uint64_t>> model(kThreads);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    auto& mine = model[t];
    for (std::uint64_t i = t; i < kWords; i += kThreads) mine.push_back(mix(i));
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      while (!stop) {
        const std::uint64_t start = random() % mine.size();
        const std::uint64_t stride = random() % 2 == 0 ? 1 : 1001;
        for (std::uint64_t k = 0; k < 500 && !stop; ++k) {
          const std::uint64_t at = (start + k * stride) % mine.size();
          std::uint64_t& word = words(region)[at * kThreads + t];
          wrong += word != mine[at];
          if (k % 2 == 0) word = mine[at] = random();
        }
      }
    });
  }
  std::mt19937_64 random(99);
  for (int i = 0; i < steps; ++i) {
    for (int k = 0; k < 20; ++k) {
      const std::uint64_t at = random() % kSize;
      region.advise({at, random() % (kSize - at)}, kAll[random() % 5]);
    }
    region.commit();
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  region.commit();
  for (std::uint64_t i = 0; i < kWords; ++i) {
    ASSERT_EQ(words(region)[i], model[i % kThreads][i / kThreads]) << i;
  }
  region = Region();
  const auto content = content_of(store, "main");
  const auto* w = reinterpret_cast<const std::uint64_t*>(content.data());
  for (std::uint64_t i = 0; i < kWords; ++i) {
    ASSERT_EQ(w[i], model[i % kThreads][i / kThreads]) << i;
  }
}

// The thread that reads ahead may be at any point while a region changes its size, rolls back, or
// closes.
TEST_P(Advices, WillNeedLoadsDuringRollbackGrowAndClose) {
  Store store = filled();
  const int last = rounds(30, 8);
  for (int round = 0; round < last; ++round) {
    Region region = store.open_region("main", with_limit(6 * kMiB));
    const auto salt = static_cast<std::uint64_t>(round);
    for (std::uint64_t i = salt; i < kWords; i += 2000) words(region)[i] = 1;
    region.grow(kSize + 3 * kMiB + (salt % 20) * kPage);
    word_at(region, region.size_bytes() - 8) = 3;
    region.advise(region.whole(), Advice::dont_need);
    region.advise(region.whole(), Advice::will_need);
    if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(500 * (round % 7)));
    region.rollback();
    ASSERT_EQ(region.size_bytes(), kSize);
    region.advise({0, kSize}, Advice::will_need);
    for (std::uint64_t i = salt; i < kWords; i += 500) ASSERT_EQ(words(region)[i], mix(i)) << i;
    if (round % 2 == 0) {
      region.grow(kSize + 4 * kMiB);
      ASSERT_TRUE(all_zero(bytes_of(region) + kSize, 4 * kMiB));
      region.rollback();
    }
  }
}

TEST_P(OwnAdvices, WillNeedLoadsTheRange) {
  Store store = filled();
  Region version = store.open_version("s", options());
  version.advise({kMiB, 4 * kMiB}, Advice::will_need);
  EXPECT_TRUE(comes_true([&] { return resident(version) >= 4 * kMiB; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(resident(version), 4 * kMiB);
  for (std::uint64_t i = 0; i < kWords; ++i) ASSERT_EQ(words(version)[i], mix(i));
}

TEST_P(OwnAdvices, WillNeedUsesHalfOfTheLimit) {
  Store store = filled();
  Region version = store.open_version("s", with_limit(4 * kMiB));
  version.advise({0, kSize}, Advice::will_need);
  EXPECT_TRUE(comes_true([&] { return resident(version) >= 2 * kMiB; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(resident(version), 2 * kMiB);
  EXPECT_EQ(version.memory_use().evicted_bytes, 0U);
}

TEST_P(OwnAdvices, DontNeedEvictsCleanPages) {
  Store store = filled();
  Region version = store.open_version("s", options());
  version.prefetch({0, kSize});
  const Pin pin = version.pin({8 * kMiB, kMiB});
  version.advise({kPage, kSize - kPage}, Advice::dont_need);
  EXPECT_EQ(resident(version), kAdviceChunk + kMiB) << "the first chunk is not whole in the range";
  EXPECT_EQ(version.memory_use().evicted_bytes, kSize - kAdviceChunk - kMiB);
  for (std::uint64_t i = 0; i < kWords; ++i) ASSERT_EQ(words(version)[i], mix(i));
}

TEST_P(OwnAdvices, DontNeedEvictsCommittedPages) {
  Store store = create();
  Region region = store.create_region("main", kSize, options());
  write_all(region);
  region.commit();
  region.close();
  region = store.open_region("main", options());
  // These pages were written, and are as committed again: private pages that equal their base
  // copies.
  for (std::uint64_t i = 0; i < kWords; i += 256) words(region)[i] = mix(i);
  region.advise({0, kSize}, Advice::dont_need);
  EXPECT_EQ(resident(region), 0U);
  EXPECT_EQ(region.memory_use().spill_written_bytes, 0U);
  for (std::uint64_t i = 0; i < kWords; ++i) ASSERT_EQ(words(region)[i], mix(i));
}

TEST_P(OwnAdvices, DirtyPagesAreEvictedFirstAndOnlyUnderPressure) {
  Store store = filled();
  Region region = store.open_region("main", with_limit(8 * kMiB));
  constexpr std::uint64_t kFirst = 10 * kMiB / 8, kEnd = 12 * kMiB / 8;
  for (std::uint64_t i = kFirst; i < kEnd; i += 512) words(region)[i] = i;
  region.advise({kFirst * 8, 2 * kMiB}, Advice::dont_need);
  EXPECT_EQ(region.memory_use().spilled_pages, 0U);
  EXPECT_GE(resident(region), 2 * kMiB);
  // Without advice, the clock begins with the first chunks, which are clean.
  region.prefetch({0, 5 * kMiB});
  EXPECT_GT(region.memory_use().spilled_pages, 0U);
  const auto is_stored = [](std::uint64_t i) { return i >= kFirst && i < kEnd && i % 512 == 0; };
  for (std::uint64_t i = 0; i < kWords; ++i) {
    ASSERT_EQ(words(region)[i], is_stored(i) ? i : mix(i)) << i;
  }
  region.commit();
  const auto content = content_of(store, "main");
  const auto* w = reinterpret_cast<const std::uint64_t*>(content.data());
  for (std::uint64_t i = 0; i < kWords; ++i) {
    ASSERT_EQ(w[i], is_stored(i) ? i : mix(i)) << i;
  }
}

TEST_P(OwnAdvices, AReaderInOrderIsReadAheadOf) {
  Store store = filled();
  Region version = store.open_version("s", options());
  volatile std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < 3 * kAdviceChunk; at += kPage) sum = sum + word_at(version, at);
  EXPECT_TRUE(comes_true([&] { return resident(version) >= 7 * kAdviceChunk; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(resident(version), 7 * kAdviceChunk) << "four chunks ahead, for a beginning";
}

TEST_P(OwnAdvices, SequentialNeedsOneFault) {
  Store store = filled();
  Region version = store.open_version("s", options());
  version.advise({0, kSize}, Advice::sequential);
  EXPECT_EQ(word_at(version, kMiB), mix(kMiB / 8));
  EXPECT_TRUE(comes_true([&] { return resident(version) >= 5 * kAdviceChunk; }));
}

TEST_P(OwnAdvices, RandomReadsNothingAhead) {
  Store store = filled();
  Region version = store.open_version("s", options());
  version.advise({0, kSize}, Advice::random);
  for (std::uint64_t at = 0; at < 4 * kMiB; at += kAdviceChunk) {
    ASSERT_EQ(word_at(version, at), mix(at / 8));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(resident(version), 4 * kMiB);
  // A window does not reach into such a part either.
  version.advise({0, 8 * kMiB}, Advice::sequential);
  for (std::uint64_t at = 4 * kMiB; at < 8 * kMiB; at += kAdviceChunk) {
    ASSERT_EQ(word_at(version, at), mix(at / 8));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(resident(version), 8 * kMiB);
}

// A sequential reader must not evict the pages of others.
TEST_P(OwnAdvices, PagesPassedBySequentialReadersAreEvictedFirst) {
  Store store = filled();
  Region version = store.open_version("s", with_limit(4 * kMiB));
  version.advise({2 * kMiB, kSize - 2 * kMiB}, Advice::sequential);
  version.prefetch({0, 2 * kMiB});
  for (std::uint64_t at = 2 * kMiB; at < kSize; at += 8) {
    ASSERT_EQ(word_at(version, at), mix(at / 8));
  }
  EXPECT_LE(resident(version), 4 * kMiB + 4 * kMiB / 16);
  EXPECT_GT(version.memory_use().evicted_bytes, kSize - 5 * kMiB);
  // Evicted pages of the first part are loaded again, and others are evicted.
  const auto before = version.memory_use().evicted_bytes;
  version.prefetch({0, 2 * kMiB});
  EXPECT_LE(version.memory_use().evicted_bytes - before, kMiB / 2);
}

// Two threads want the same pages, and the limit lets neither have them for long.
TEST_P(OwnAdvices, ScansUnderALimitReadTheContent) {
  Store store = filled();
  Region version = store.open_version("s", with_limit(4 * kMiB));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kWords; ++i) {
        const std::uint64_t at = (i + t * kWords / 3) % kWords;
        wrong += words(version)[at] != mix(at);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(resident(version), 4 * kMiB + 4 * kMiB / 8);
}

// Zeroed bytes are zero, and no others change; bytes that were zero already are not written.
TEST_P(Advices, ZeroedBytesAreZeroAndNoOthersChange) {
  Store store = filled();
  Region region = store.open_region("main", options());
  region.zero({100, 3 * kMiB + 77});
  for (std::uint64_t i = 0; i < kWords; ++i) {
    if (i * 8 >= 104 && (i + 1) * 8 <= 3 * kMiB + 176) {
      ASSERT_EQ(words(region)[i], 0u) << i;
    } else if ((i + 1) * 8 <= 100 || i * 8 >= 3 * kMiB + 177) {
      ASSERT_EQ(words(region)[i], mix(i)) << i;
    }
  }
  region.commit();
  const CommitReport again = [&] {
    region.zero({0, 3 * kMiB});
    return region.commit();
  }();
  EXPECT_EQ(again.pages_dirty, 1u);  // the first page, which was not all zero
  EXPECT_ERRC(region.zero({kSize - 8, 16}), Errc::invalid_argument);
  Region version = store.open_version("s", options());
  EXPECT_ERRC(version.zero({0, 8}), Errc::read_only);
}

// A range without content is not loaded.
TEST_P(Advices, ZeroOfNothingTakesNoMemory) {
  if (GetParam() == Engine::mapped) GTEST_SKIP() << "the kernel brings pages in";
  Store store = create();
  Region region = store.create_region("main", 64 * kMiB, options());
  region.zero({0, 64 * kMiB});
  EXPECT_EQ(region.memory_use().resident_bytes, 0u);
  EXPECT_EQ(region.commit().pages_dirty, 0u);
}

VELLUM_BOTH_ENGINES(Advices);
VELLUM_PAGED_ENGINES(OwnAdvices);

}  // namespace
}  // namespace vellum::test
