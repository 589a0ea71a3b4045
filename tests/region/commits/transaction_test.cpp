// Region::begin(): all of it or nothing, whatever happens to the guard, the region and the disk.
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>

#include "region/region_impl.hpp"
#include "store/branch/fault_fs.hpp"
#include "store/catalog/store_directory.hpp"
#include "support/child.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

static_assert(std::is_nothrow_move_constructible_v<Transaction>);
static_assert(std::is_nothrow_move_assignable_v<Transaction>);
static_assert(!std::is_copy_constructible_v<Transaction>);

class Transactions : public StoreTest {
 protected:
  Region make() {
    create();
    Region region = open_or_make();
    word_at(region, 0) = 1;
    word_at(region, 100 * kPage) = 1;
    region.commit();
    return region;
  }
  Region open_or_make() { return store().open_or_create_region("main", kMiB, options()); }
  Store store() const { return Store::open(path()); }
  std::uint64_t committed(std::uint64_t offset) const {
    std::uint64_t word = 0;
    store().read("main", offset, &word, sizeof word);
    return word;
  }
  // Whether a transaction can begin: none is open.
  static bool is_free(Region& region) {
    try {
      region.begin().rollback();
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::busy) << error.what();
      return false;
    }
  }
};

TEST_P(Transactions, CommitKeepsAllOfIt) {
  Region region = make();
  auto transaction = region.begin();
  EXPECT_TRUE(transaction.is_open());
  word_at(region, 0) = 2;
  word_at(region, 100 * kPage) = 2;
  const auto report = transaction.commit("both");
  EXPECT_EQ(report.pages_changed, 2u);
  EXPECT_FALSE(transaction.is_open());
  EXPECT_EQ(store().version("main").message, "both");
  EXPECT_EQ(committed(0) + committed(100 * kPage), 4u);
  word_at(region, 0) = 3;  // no longer part of the transaction
  transaction = Transaction();
  EXPECT_EQ(word_at(region, 0), 3u);
  EXPECT_ERRC(transaction.commit(), Errc::invalid_argument);
  EXPECT_ERRC(transaction.rollback(), Errc::invalid_argument);
  region.commit();
  EXPECT_EQ(committed(0), 3u);
}

TEST_P(Transactions, WithoutACommitATransactionIsRolledBack) {
  Region region = make();
  const auto before = content_of(region);
  {
    const auto transaction = region.begin();
    word_at(region, 0) = 2;
    std::memset(bytes_of(region) + 50 * kPage, 2, 100 * kPage);
    region.grow(2 * kMiB);
    word_at(region, 2 * kMiB - 8) = 2;
  }
  EXPECT_TRUE(content_of(region) == before) << "with its size";
  EXPECT_EQ(region.commit().pages_changed, 0u);
  auto transaction = region.begin();
  word_at(region, 0) = 2;
  transaction.rollback();
  EXPECT_FALSE(transaction.is_open());
  EXPECT_TRUE(content_of(region) == before);
  EXPECT_TRUE(is_free(region));
}

TEST_P(Transactions, AnExceptionRollsBack) {
  Region region = make();
  const auto transfer = [&] {
    auto transaction = region.begin();
    word_at(region, 0) -= 1;
    if (word_at(region, 0) == 0) throw std::runtime_error("no money");
    transaction.commit();
  };
  EXPECT_THROW(transfer(), std::runtime_error);
  EXPECT_EQ(word_at(region, 0), 1u);
  word_at(region, 0) = 9;
  region.commit();
  transfer();
  EXPECT_EQ(committed(0), 8u);
}

// begin() marks no point of its own.
TEST_P(Transactions, EarlierStoresBelongToATransaction) {
  Region region = make();
  word_at(region, 0) = 2;
  region.begin().rollback();
  EXPECT_EQ(word_at(region, 0), 1u);
  word_at(region, 0) = 3;
  region.begin().commit();
  EXPECT_EQ(committed(0), 3u);
}

// A commit that has begun before is none of its stores.
TEST_P(Transactions, ATransactionBeginsAfterAnAsynchronousCommit) {
  Region region = make();
  word_at(region, 0) = 2;
  auto end = region.commit_async();
  {
    const auto transaction = region.begin();
    word_at(region, 0) = 3;
  }
  end.get();
  EXPECT_EQ(word_at(region, 0), 2u);
  EXPECT_EQ(committed(0), 2u);
}

TEST_P(Transactions, OtherCommitsAreBusyMeanwhile) {
  Region region = make();
  auto transaction = region.begin();
  word_at(region, 0) = 2;
  const auto refused = [&] {
    expect_error(Errc::busy, {"main", "begin()", "transaction"}, [&] { (void)region.begin(); });
    expect_error(Errc::busy, {"main", "commit()"}, [&] { region.commit(); });
    expect_error(Errc::busy, {"main", "commit_async()"}, [&] { (void)region.commit_async(); });
    expect_error(Errc::busy, {"main", "commit_ranges()"},
                 [&] { region.commit_ranges({region.whole()}); });
    expect_error(Errc::busy, {"main", "snapshot()"}, [&] { region.snapshot("s"); });
    expect_error(Errc::busy, {"main", "snapshot_async()"},
                 [&] { (void)region.snapshot_async("s"); });
    expect_error(Errc::busy, {"main", "rollback()"}, [&] { region.rollback(); });
  };
  refused();
  std::thread(refused).join();
  EXPECT_EQ(word_at(region, 0), 2u);
  EXPECT_EQ(committed(0), 1u);
  EXPECT_FALSE(store().contains("s"));
  transaction.commit();
  region.snapshot("s");  // the name was not taken
  EXPECT_EQ(committed(0), 2u);
}

TEST_P(Transactions, ATransactionIsMovable) {
  Region region = make();
  const auto begin = [&] {
    auto transaction = region.begin();
    word_at(region, 0) = 2;
    return transaction;
  };
  auto first = begin();
  Transaction second = std::move(first);
  // NOLINTNEXTLINE(bugprone-use-after-move): what is tested.
  EXPECT_FALSE(first.is_open());
  EXPECT_ERRC(first.commit(), Errc::invalid_argument);
  first = Transaction();
  EXPECT_EQ(word_at(region, 0), 2u);
  Transaction& same = second;
  second = std::move(same);
  EXPECT_TRUE(second.is_open());
  second.commit();
  EXPECT_EQ(committed(0), 2u);
  second = region.begin();
  word_at(region, 0) = 3;
  second = Transaction();  // is abandoned
  EXPECT_EQ(word_at(region, 0), 2u);
  EXPECT_TRUE(is_free(region));
}

TEST_P(Transactions, ATransactionOutlivesItsRegionHandle) {
  Region region = make();
  auto transaction = region.begin();
  word_at(region, 0) = 2;
  Region moved = std::move(region);
  region = Region();
  EXPECT_ERRC(moved.commit(), Errc::busy);
  transaction.commit();
  EXPECT_EQ(committed(0), 2u);
  transaction = moved.begin();
  word_at(moved, 0) = 3;
  moved = Region();
  EXPECT_TRUE(transaction.is_open());
  EXPECT_ERRC((void)open_or_make(), Errc::busy);
  transaction.commit();  // releases the branch
  EXPECT_EQ(committed(0), 3u);
  EXPECT_EQ(word_at(open_or_make(), 0), 3u);
}

TEST_P(Transactions, CloseEndsATransaction) {
  Region region = make();
  auto transaction = region.begin();
  word_at(region, 0) = 2;
  region.close();
  EXPECT_FALSE(transaction.is_open());
  EXPECT_ERRC(transaction.commit(), Errc::invalid_argument);
  EXPECT_ERRC(transaction.rollback(), Errc::invalid_argument);
  Region again = open_or_make();
  word_at(again, 8) = 5;
  transaction = Transaction();  // of another opening
  EXPECT_EQ(word_at(again, 0), 1u);
  EXPECT_EQ(word_at(again, 8), 5u);
}

TEST_P(Transactions, ATransactionOfAReadOnlyRegionIsRefused) {
  Region region = make();
  region.snapshot("s");
  Region version = store().open_version("s", options());
  expect_error(Errc::read_only, {"'s'"}, [&] { (void)version.begin(); });
  EXPECT_ERRC((void)Region().begin(), Errc::invalid_argument);
  EXPECT_FALSE(Transaction().is_open());
  EXPECT_ERRC(Transaction().commit(), Errc::invalid_argument);
}

TEST_P(Transactions, AForkedChildHasNoTransaction) {
  Region region = make();
  auto transaction = region.begin();
  word_at(region, 0) = 2;
  Child child = start_child([&] {
    EXPECT_ERRC(transaction.commit(), Errc::invalid_argument);
    transaction = Transaction();
  });
  EXPECT_CHILD_EXIT(child.wait(), 0);
  EXPECT_EQ(word_at(region, 0), 2u);
  transaction.commit();
  EXPECT_EQ(committed(0), 2u);
}

// The disk is full, or fails, under an open transaction.
class FailedTransactions : public Transactions {
 protected:
  Region open_on_faulty_disk() {
    make().close();
    RegionOptions quiet = options();
    quiet.encode_threads = 0;
    quiet.background_gc = false;
    return region::RegionAccess::open_branch(store::StoreDirectory::open(fs_, path()), "main",
                                             quiet);
  }
  void fill_disk() { fs_.fail_nth(store::test::Call::write, 1, Errc::no_space, true); }

  store::test::FaultFs fs_{base::posix_fs()};
};

TEST_P(FailedTransactions, ATransactionStaysOpenUntilThereIsSpace) {
  Region region = open_on_faulty_disk();
  auto transaction = region.begin();
  word_at(region, 0) = 2;
  word_at(region, 100 * kPage) = 2;
  fill_disk();
  for (int i = 0; i < 2; ++i) EXPECT_ERRC(transaction.commit(), Errc::no_space);
  EXPECT_TRUE(transaction.is_open());
  EXPECT_ERRC(region.commit(), Errc::busy);
  EXPECT_EQ(word_at(region, 0), 2u) << "memory is as it was";
  word_at(region, 0) = 3;
  fs_.heal();
  EXPECT_EQ(transaction.commit().pages_changed, 2u);
  EXPECT_EQ(committed(0), 3u);
  EXPECT_EQ(committed(100 * kPage), 2u);
}

TEST_P(FailedTransactions, AnAbandonedTransactionIsRolledBack) {
  Region region = open_on_faulty_disk();
  const auto before = content_of(region);
  {
    auto transaction = region.begin();
    word_at(region, 0) = 2;
    word_at(region, 100 * kPage) = 2;
    fill_disk();
    EXPECT_ERRC(transaction.commit(), Errc::no_space);
  }
  EXPECT_TRUE(content_of(region) == before);
  fs_.heal();
  EXPECT_EQ(region.commit().pages_changed, 0u);
  word_at(region, 8) = 4;
  region.commit();
  EXPECT_EQ(committed(0), 1u);
}

TEST_P(FailedTransactions, AFlushThatFailsPoisonsTheBranch) {
  Region region = open_on_faulty_disk();
  word_at(region, 0) = 5;
  region.commit();  // engine mapped: the image is marked as written by now
  const auto before = content_of(region);
  auto transaction = region.begin();
  word_at(region, 0) = 2;
  fs_.fail_nth(store::test::Call::sync, 1, Errc::io);
  EXPECT_THROW(transaction.commit(), Error);
  fs_.heal();
  EXPECT_ERRC(transaction.commit(), Errc::poisoned);
  transaction = Transaction();
  EXPECT_TRUE(content_of(region) == before);
}

// As when the last commit cannot be read back. The transaction's stores must not be committed.
TEST_P(FailedTransactions, ATransactionThatCannotBeRolledBackIsNotCommitted) {
  Region region = open_on_faulty_disk();
  bool& fails = region::RegionAccess::impl_of(region).base_copies_lost;
  testing::internal::CaptureStderr();
  {
    auto transaction = region.begin();
    word_at(region, 0) = 2;
    fails = true;
    EXPECT_ERRC(transaction.rollback(), Errc::poisoned);
    EXPECT_TRUE(transaction.is_open());
  }
  fails = false;
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("could not be rolled back: region 'main'"), std::string::npos) << told;
  for (int i = 0; i < 2; ++i) {
    expect_error(Errc::poisoned, {"main", "rollback()"}, [&] { region.commit(); });
    expect_error(Errc::poisoned, {"main", "rollback()"}, [&] { (void)region.begin(); });
  }
  EXPECT_EQ(word_at(region, 0), 2u);
  region.rollback();
  EXPECT_EQ(word_at(region, 0), 1u);
  EXPECT_EQ(region.commit().pages_changed, 0u);
  EXPECT_TRUE(is_free(region));
}

VELLUM_BOTH_ENGINES(Transactions);
VELLUM_BOTH_ENGINES(FailedTransactions);

}  // namespace
}  // namespace vellum::test
