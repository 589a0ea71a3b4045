// Regions larger than memory: pages that are written whole need no data of the store, and random
// words load only their pages.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "region/region_impl.hpp"
#include "store/branch/fault_fs.hpp"
#include "store/catalog/store_directory.hpp"
#include "support/paging.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kPartsBytes = 16 * kMiB;
constexpr std::uint64_t kPartsLimit = 4 * kMiB;
constexpr std::uint64_t kPartsWords = kPartsBytes / 8;
constexpr std::uint64_t kChunkBytes = 64u << 10;

class PagingParts : public StoreTest {
 protected:
  RegionOptions limited(std::uint64_t limit = kPartsLimit) const {
    RegionOptions o = options();
    o.memory_limit_bytes = limit;
    return o;
  }
  // Word i of the last commit is mix(i).
  Store make(std::uint64_t bytes = kPartsBytes) {
    Store store = create();
    Region region = store.create_region("main", bytes, options());
    for (std::uint64_t at = 0; at < bytes; at += 8) word_at(region, at) = mix(at / 8);
    region.commit();
    return store;
  }
  static void rewrite(const Region& region, std::uint64_t add) {
    for (std::uint64_t i = 0; i < kPartsWords; ++i) word_at(region, i * 8) = mix(i + add);
  }
  static void expect_written(const Region& region, std::uint64_t add) {
    for (std::uint64_t i = 0; i < kPartsWords; ++i)
      ASSERT_EQ(word_at(region, i * 8), mix(i + add)) << i;
  }
};

TEST_P(PagingParts, PagesWrittenWholeAreNotRead) {
  Store store = make();
  Region region = store.open_region("main", limited());
  rewrite(region, 5);
  for (const auto& file : std::filesystem::recursive_directory_iterator(path() + "/packs")) {
    if (!file.is_regular_file()) continue;
    std::fstream pack(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    const std::string damage(file.file_size(), '\xee');
    pack.write(damage.data(), static_cast<std::streamsize>(damage.size()));
  }
  for (int i = 0; i < 2; ++i) expect_written(region, 5);
}

TEST_P(PagingParts, ARollbackRestoresPagesThatWereNotRead) {
  Store store = make();
  Region region = store.open_region("main", limited());
  rewrite(region, 5);
  expect_written(region, 5);
  region.rollback();
  EXPECT_EQ(region.memory_use().spilled_pages, 0U);
  expect_written(region, 0);
  word_at(region, 8) = 1;
  region.commit();
  const auto content = content_of(store, "main");
  for (std::uint64_t i = 0; i < kPartsWords; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, content.data() + i * 8, 8);
    ASSERT_EQ(word, i == 1 ? 1 : mix(i)) << i;
  }
}

TEST_P(PagingParts, ACommitRecordsPagesThatWereNotRead) {
  Store store = make();
  Region region = store.open_region("main", limited());
  rewrite(region, 5);
  expect_written(region, 5);
  std::memset(bytes_of(region) + kPartsBytes - 3 * kPage, 0, kPage);
  region.commit();
  // Later commits compare with this one.
  for (std::uint64_t i = 0; i < kPartsWords; i += 512) word_at(region, i * 8) = i;
  const auto wanted = content_of(region);
  region.commit();
  EXPECT_TRUE(content_of(store, "main") == wanted);
  EXPECT_TRUE(content_of(region) == wanted);
  EXPECT_TRUE(all_zero(wanted.data() + kPartsBytes - 3 * kPage + 8, kPage - 8));
}

TEST_P(PagingParts, AFailedCommitKeepsPagesThatWereNotRead) {
  make();
  store::test::FaultFs fs{base::posix_fs()};
  for (const std::uint64_t nth : {1U, 2U, 3U, 4U}) {
    SCOPED_TRACE(nth);
    Region region = region::RegionAccess::open_branch(store::StoreDirectory::open(fs, path()),
                                                      "main", limited());
    rewrite(region, 5);
    expect_written(region, 5);
    fs.fail_nth(store::test::Call::write, nth, Errc::no_space, true);
    EXPECT_THROW(region.commit(), Error);
    fs.heal();
    expect_written(region, 5);
    if (nth % 2 == 0) {
      region.commit();
      rewrite(region, 0);
      region.commit();
    } else {
      region.rollback();
      expect_written(region, 0);
    }
  }
}

// Each thread owns pages, and knows its last stores.
TEST_P(PagingParts, ThreadsRewritePagesWhileCommitsGoOn) {
  constexpr std::uint64_t kThreads = 3, kPages = kPartsBytes / kPage;
  Store store = make();
  Region region = store.open_region("main", limited());
  std::vector<std::uint64_t> model(kPages, 0);  // the added values
  std::atomic<int> wrong{0};
  for (int round = 0; round < 4; ++round) {
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937_64 random(static_cast<std::uint64_t>(round) * kThreads + t);
        for (int i = 0; i < 800; ++i) {
          const std::uint64_t page = random() % (kPages / kThreads) * kThreads + t;
          for (std::uint64_t at = page * kPage; at < (page + 1) * kPage; at += 8) {
            wrong += word_at(region, at) != mix(at / 8 + model[page]);
          }
          const std::uint64_t add = random();
          const std::uint64_t words = i % 4 == 0 ? 1 : kPage / 8;
          if (words == 1) continue;
          for (std::uint64_t at = page * kPage; at < (page + 1) * kPage; at += 8)
            word_at(region, at) = mix(at / 8 + add);
          model[page] = add;
        }
      });
    }
    EXPECT_NO_THROW(region.commit());
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(wrong, 0) << round;
  }
  region.commit();
  const auto content = content_of(store, "main");
  for (std::uint64_t i = 0; i < kPartsWords; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, content.data() + i * 8, 8);
    ASSERT_EQ(word, mix(i + model[i * 8 / kPage])) << i;
  }
}

// The kernel takes care of engine mapped.
VELLUM_PAGED_ENGINES(PagingParts);

// Only engine uffd loads parts of chunks.
class PagingPages : public PagingParts {
 protected:
  // A word of each chunk, at random places.
  static std::vector<std::uint64_t> places(std::uint64_t bytes) {
    std::vector<std::uint64_t> out(bytes / kChunkBytes);
    std::mt19937_64 random(7);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = i * kChunkBytes + random() % (kChunkBytes / 8) * 8;
    std::shuffle(out.begin(), out.end(), random);
    return out;
  }
};

TEST_P(PagingPages, RandomWordsLoadOnlyTheirPages) {
  constexpr std::uint64_t kBytes = 64 * kMiB, kLimit = 16 * kMiB;
  Store store = make(kBytes);
  for (const bool write : {false, true}) {
    Region region = store.open_region("main", limited(kLimit));
    for (const std::uint64_t at : places(kBytes)) {
      ASSERT_EQ(word_at(region, at), mix(at / 8));
      if (write) word_at(region, at) += 1;
    }
    const auto use = region.memory_use();
    EXPECT_LT(use.evicted_bytes, kLimit);  // by chunks: at least 48 MiB would be evicted
    EXPECT_LE(use.resident_bytes, kLimit + kLimit / 16);
    // All the other words are as committed, and those that were written are not.
    std::vector<std::uint64_t> written(kBytes / kChunkBytes, UINT64_MAX);
    for (const std::uint64_t at : places(kBytes)) written[at / kChunkBytes] = at;
    for (std::uint64_t at = 0; at < kBytes; at += 8) {
      const bool changed = write && written[at / kChunkBytes] == at;
      ASSERT_EQ(word_at(region, at), mix(at / 8) + (changed ? 1 : 0)) << at;
    }
    if (write) region.rollback();
    for (const std::uint64_t at : places(kBytes)) ASSERT_EQ(word_at(region, at), mix(at / 8));
  }
}

TEST_P(PagingPages, APinLoadsWholeChunks) {
  Store store = make();
  Region region = store.open_region("main", limited());
  const auto touched = places(kPartsBytes);
  for (const std::uint64_t at : touched) word_at(region, at) += 1;
  std::vector<std::byte> copy(kMiB);
  for (std::uint64_t from = 0; from < kPartsBytes; from += kMiB) {
    const Pin pin = region.pin({from, kMiB});
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    for (std::uint64_t at = from; at < from + kMiB; at += kChunkBytes) {
      ASSERT_EQ(::write(ends[1], bytes_of(region) + at, kChunkBytes),
                static_cast<ssize_t>(kChunkBytes))
          << strerror(errno);
      ASSERT_EQ(::read(ends[0], copy.data(), kChunkBytes), static_cast<ssize_t>(kChunkBytes));
      ASSERT_EQ(std::memcmp(copy.data(), bytes_of(region) + at, kChunkBytes), 0);
    }
    ::close(ends[0]);
    ::close(ends[1]);
  }
  std::vector<bool> changed(kPartsWords);
  for (const std::uint64_t at : touched) changed[at / 8] = true;
  for (std::uint64_t i = 0; i < kPartsWords; ++i)
    ASSERT_EQ(word_at(region, i * 8), mix(i) + (changed[i] ? 1 : 0)) << i;
}

TEST_P(PagingPages, CommitsAndRollbacksIncludePartialChunks) {
  Store store = make();
  Region region = store.open_region("main", limited());
  std::vector<std::uint64_t> model(kPartsWords);
  for (std::uint64_t i = 0; i < kPartsWords; ++i) model[i] = mix(i);
  std::mt19937_64 random(3);
  for (int round = 0; round < 6; ++round) {
    std::vector<std::uint64_t> now = model;
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t at = random() % kPartsWords;
      ASSERT_EQ(word_at(region, at * 8), now[at]);
      if (i % 4 != 0) word_at(region, at * 8) = now[at] = random();
    }
    if (round % 3 == 1) {
      region.rollback();
    } else {
      region.commit();
      model = std::move(now);
    }
  }
  for (std::uint64_t i = 0; i < kPartsWords; ++i) ASSERT_EQ(word_at(region, i * 8), model[i]) << i;
  const auto content = content_of(store, "main");
  EXPECT_EQ(std::memcmp(content.data(), model.data(), kPartsBytes), 0);
}

VELLUM_PARTIAL_FILL_ENGINES(PagingPages);

}  // namespace
}  // namespace vellum::test
