// commit_async() and snapshot_async(): which stores are in, which are not, and how failures are
// reported.
#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "region/region_impl.hpp"
#include "store/branch/fault_fs.hpp"
#include "store/catalog/store_directory.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kPages = kSanitizer ? 1024 : 4096;  // enough to be encoded by threads

class AsyncCommit : public StoreTest {
 protected:
  Region make(std::uint64_t limit_bytes = 0) {
    RegionOptions how = options();
    how.memory_limit_bytes = limit_bytes;
    store_.emplace(create());
    return store_->create_region("main", kPages * kPage, how);
  }
  // A word of each page; every fifth page whole.
  static void fill(const Region& region, std::uint64_t value, std::uint64_t pages = kPages) {
    for (std::uint64_t p = 0; p < pages; ++p) {
      word_at(region, p * kPage + p % 512 * 8) = value;
      if (p % 5 != 0) continue;
      std::mt19937_64 random(value * kPages + p);
      for (std::uint64_t i = 0; i < kPage; i += 8) word_at(region, p * kPage + i) = random();
    }
  }
  std::vector<std::byte> stored(const std::string& version) const {
    return content_of(*store_, version);
  }

  store::test::FaultFs fs_{base::posix_fs()};
  std::optional<Store> store_;
};

TEST_P(AsyncCommit, ACommitHasTheContentAtTheCall) {
  Region region = make();
  fill(region, 1);
  for (std::uint64_t n = 1; n <= 6; ++n) {
    SCOPED_TRACE(n);
    const auto now = content_of(region);
    auto end = region.commit_async("number " + std::to_string(n));
    fill(region, n + 1, kPages / n);  // continues at once
    const CommitReport report = end.get();
    EXPECT_EQ(report.sequence, n);
    EXPECT_EQ(region.sequence(), n);
    EXPECT_GT(report.pages_changed, 0U);
    EXPECT_GT(report.pause_time.count(), 0);
    EXPECT_GE(report.total_time, report.pause_time);
    EXPECT_EQ(store_->version("main").message, "number " + std::to_string(n));
    EXPECT_TRUE(stored("main") == now);
  }
  const auto last = content_of(region);
  region.commit();
  EXPECT_TRUE(stored("main") == last);
  EXPECT_TRUE(store_->verify({.read_data = true}).damages.empty());
}

TEST_P(AsyncCommit, SnapshotsAreTakenWithoutWaiting) {
  Region region = make();
  std::vector<std::vector<std::byte>> contents;
  std::vector<std::future<CommitReport>> ends;
  for (std::uint64_t n = 0; n < 5; ++n) {
    fill(region, n, kPages / 5 * (n + 1));
    contents.push_back(content_of(region));
    ends.push_back(region.snapshot_async("s" + std::to_string(n), "m"));
  }
  EXPECT_ERRC(region.snapshot_async("s1"), Errc::already_exists);
  EXPECT_ERRC(region.snapshot_async("no/name"), Errc::invalid_argument);
  for (std::uint64_t n = 0; n < 5; ++n) {
    EXPECT_EQ(ends[n].get().sequence, n + 1);
    EXPECT_TRUE(stored("s" + std::to_string(n)) == contents[n]) << n;
    EXPECT_EQ(store_->version("s" + std::to_string(n)).message, "m");
  }
}

TEST_P(AsyncCommit, OtherCallsWaitForTheEndOfTheCommit) {
  Region region = make();
  fill(region, 1);
  const auto first = content_of(region);
  auto dropped = region.commit_async();
  dropped = {};
  fill(region, 2);
  region.rollback();
  EXPECT_TRUE(content_of(region) == first) << "rollback() leads to the commit that was begun";
  fill(region, 3);
  auto end = region.commit_async();
  region.grow((kPages + 100) * kPage);
  EXPECT_EQ(region.size_bytes(), (kPages + 100) * kPage);
  EXPECT_EQ(end.get().sequence, 2U);
  const auto grown = content_of(region);
  end = region.commit_async();
  region.close();
  EXPECT_TRUE(stored("main") == grown) << "close() waits";
  EXPECT_EQ(end.get().sequence, 3U) << "the future outlives the region";
  // A call with nothing to commit creates no version.
  region = store_->open_region("main", options());
  EXPECT_EQ(region.commit_async().get().sequence, 3U);
  Region version = store_->open_version("main");
  EXPECT_ERRC(version.commit_async(), Errc::read_only);
  EXPECT_ERRC(Region().commit_async(), Errc::invalid_argument);
}

// Pages are loaded and evicted meanwhile; some are in the spill file at the call.
TEST_P(AsyncCommit, CommitsWithLittleMemory) {
  Region region = make(1u << 20);
  for (std::uint64_t n = 1; n <= 4; ++n) {
    fill(region, n);
    const auto now = content_of(region);
    auto end = region.commit_async();
    fill(region, n + 1, kPages / 2);
    end.get();
    EXPECT_TRUE(stored("main") == now) << n;
  }
  const auto last = content_of(region);
  region.commit();
  EXPECT_TRUE(stored("main") == last);
}

// Each writer's words only grow, and all of its words are stored before the next round: a commit
// has one round of it, or two consecutive ones when the call was between them.
TEST_P(AsyncCommit, ACommitOfConcurrentWritersIsOneRound) {
  Region region = make();
  constexpr std::uint64_t kPagesEach = 64;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> done[2] = {};
  std::vector<std::thread> writers;
  for (std::uint64_t w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      for (std::uint64_t round = 1; !stop; ++round) {
        for (std::uint64_t p = 0; p < kPagesEach; ++p) {
          std::atomic_ref(word_at(region, (w * kPagesEach + p) * kPage))
              .store(round, std::memory_order_relaxed);
        }
        done[w].store(round, std::memory_order_release);
      }
    });
  }
  for (int i = 0; i < test::rounds(40, 10); ++i) {
    std::uint64_t before[2] = {done[0].load(), done[1].load()};
    auto end = region.commit_async();
    const std::uint64_t after[2] = {done[0].load() + 1, done[1].load() + 1};
    end.get();
    const auto content = stored("main");
    for (std::uint64_t page = 0; page < 2 * kPagesEach; ++page) {
      std::uint64_t word = 0;
      std::memcpy(&word, content.data() + page * kPage, sizeof word);
      ASSERT_GE(word, before[page / kPagesEach]) << "stored before the call";
      ASSERT_LE(word, after[page / kPagesEach]) << "not stored when the call returned";
    }
  }
  stop = true;
  for (auto& writer : writers) writer.join();
}

TEST_P(AsyncCommit, TheFutureThrowsTheFailureAndTheCommitIsUndone) {
  for (std::uint64_t nth = 1; nth <= 6; ++nth) {
    SCOPED_TRACE("write " + std::to_string(nth));
    std::filesystem::remove_all(path());
    StoreOptions tiny;
    tiny.journal_half_bytes = 64u << 10;
    tiny.pack_bytes = 1u << 20;
    store_.emplace(create(tiny));
    store_->create_region("main", kPages * kPage, options()).close();
    Region region(region::RegionAccess::open_branch(store::StoreDirectory::open(fs_, path()),
                                                    "main", options()));
    fill(region, 1, 300);
    region.commit();
    const auto good = content_of(region);
    fill(region, 2, 200 + nth);
    fs_.fail_nth(store::test::Call::write, nth, Errc::no_space, true);
    auto end = region.commit_async();
    fill(region, 3, 100);  // while it fails
    const auto wanted = content_of(region);
    bool committed = true;
    try {
      end.get();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::no_space) << error.what();
      committed = false;
    }
    fs_.heal();
    EXPECT_TRUE(committed || stored("main") == good);
    EXPECT_TRUE(content_of(region) == wanted);
    region.commit();
    region.close();
    EXPECT_TRUE(stored("main") == wanted) << "the next commit takes everything along";
    EXPECT_TRUE(store_->verify({.read_data = true}).damages.empty());
  }
}

TEST_P(AsyncCommit, AChildForkedDuringACommitChangesNothing) {
  Region region = make();
  fill(region, 1);
  const auto now = content_of(region);
  auto end = region.commit_async();
  Child child = start_child([&] {
    EXPECT_ERRC(region.commit(), Errc::invalid_argument);
    region = Region();  // does not change the parent's files and memory
  });
  EXPECT_CHILD_EXIT(child.wait(), 0);
  end.get();
  EXPECT_TRUE(stored("main") == now);
}

VELLUM_BOTH_ENGINES(AsyncCommit);

}  // namespace
}  // namespace vellum::test
