// A commit fails at each of its file system calls; the tests check memory and store afterwards.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/threads/interruption.hpp"
#include "region/encode/encoder.hpp"
#include "region/region_impl.hpp"
#include "store/branch/fault_fs.hpp"
#include "store/catalog/store_directory.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

using FailedCommitCall = store::test::Call;

class FailedCommit : public StoreTest {
 protected:
  static constexpr std::uint64_t kBytes = kMiB;

  void make_store() {
    StoreOptions tiny;
    tiny.journal_half_bytes = 64u << 10;
    tiny.pack_bytes = 1u << 20;
    std::filesystem::remove_all(path());
    create(tiny).create_region("main", kBytes, options()).close();
  }

  Region open() {
    const auto core = store::StoreDirectory::open(fs_, path());
    RegionOptions one_thread = options();
    one_thread.encode_threads = 0;
    return region::RegionAccess::open_branch(core, "main", one_thread);
  }

  // Small and large changes, to pages with and without committed content, zeros among them.
  void change(const Region& region, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 30; ++i) word_at(region, random() % (kBytes / 8) * 8) = random();
    const std::uint64_t from = random() % (kBytes / 2 / 8) * 8;
    const std::uint64_t length = random() % 3 == 0 ? 400'000 : 20'000;
    for (std::uint64_t at = from; at < from + length; at += 8) word_at(region, at) = random();
    std::memset(bytes_of(region) + random() % (kBytes - 9000), 0, 9000);
  }

  store::test::FaultFs fs_{base::posix_fs()};
};

TEST_P(FailedCommit, AnInterruptedCommitChangesNothing) {
  make_store();
  Region region = open();
  change(region, 1);
  region.commit();
  const auto good = content_of(region);
  change(region, 2);
  const auto wanted = content_of(region);
  {
    const std::atomic<bool> wish{true};
    const base::Interruptible asked(wish);
    EXPECT_THROW(region.commit(), base::Interrupted);
    EXPECT_THROW(region.snapshot("s"), base::Interrupted);
    auto transaction = region.begin();
    EXPECT_THROW(transaction.commit(), base::Interrupted);
    EXPECT_TRUE(transaction.is_open());
    EXPECT_EQ(content_of(region), wanted);
    EXPECT_EQ(content_of(Store::open(path()), "main"), good);
    const base::Interruptible::Request none{false};
    const base::Interruptible again(none);
    transaction.commit();
  }
  EXPECT_EQ(content_of(Store::open(path()), "main"), wanted);
  EXPECT_FALSE(Store::open(path()).contains("s"));
  change(region, 3);
  region.commit();
}

TEST_P(FailedCommit, AFailedWriteKeepsMemoryAndTheLastCommit) {
  for (std::uint64_t nth = 1; nth <= 12; ++nth) {
    SCOPED_TRACE("write " + std::to_string(nth));
    make_store();
    Region region = open();
    change(region, nth);
    region.commit();
    const auto good = content_of(region);

    change(region, nth + 100);
    const auto wanted = content_of(region);
    fs_.fail_nth(FailedCommitCall::write, nth, nth % 2 == 0 ? Errc::io : Errc::no_space, true);
    bool committed = true;
    try {
      region.commit();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), nth % 2 == 0 ? Errc::io : Errc::no_space) << error.what();
      committed = false;
    }
    // (Not every write matters: data that only repair uses may be missing.)
    EXPECT_TRUE(committed || fs_.seen(FailedCommitCall::write) >= nth);
    fs_.heal();
    EXPECT_TRUE(content_of(region) == wanted) << "memory is as it was";
    if (!committed) {
      EXPECT_TRUE(content_of(Store::open(path()), "main") == good) << "so is the last commit";
    }
    if (nth % 3 == 0 && !committed) {
      region.rollback();
      EXPECT_TRUE(content_of(region) == good);
      change(region, nth + 200);
    }
    word_at(region, 0) += 1;
    const auto last = content_of(region);
    region.commit();
    region.close();
    EXPECT_TRUE(content_of(Store::open(path()).open_region("main", options())) == last);
    EXPECT_TRUE(Store::open(path()).verify({.read_data = true}).damages.empty());
  }
}

TEST_P(FailedCommit, AFlushThatFailsPoisonsTheBranch) {
  for (const bool large : {false, true}) {
    make_store();
    Region region = open();
    change(region, 1);
    region.snapshot("good");
    const auto good = content_of(region);
    word_at(region, 0) += 1;
    if (large) change(region, 2);
    const auto wanted = content_of(region);
    fs_.fail_nth(FailedCommitCall::sync, 1, Errc::io);
    EXPECT_THROW(region.commit(), Error);
    fs_.heal();
    EXPECT_TRUE(content_of(region) == wanted);
    for (int i = 0; i < 2; ++i) {
      expect_error(Errc::poisoned, {"main"}, [&] { region.commit(); });
      expect_error(Errc::poisoned, {"main"}, [&] { region.snapshot("no"); });
    }
    region.rollback();  // memory can still be restored to the last commit
    EXPECT_TRUE(content_of(region) == good);
    expect_error(Errc::poisoned, {"main"}, [&] { region.commit(); });
    region.close();
    Region again = Store::open(path()).open_region("main", options());
    EXPECT_TRUE(content_of(again) == good || content_of(again) == wanted);
    word_at(again, 8) = 77;
    again.commit();
    const auto last = content_of(again);
    again.close();
    EXPECT_TRUE(content_of(Store::open(path()), "main") == last);
    EXPECT_TRUE(content_of(Store::open(path()), "good") == good);
  }
}

// The commit fails before it has encoded all dirty pages.
TEST_P(FailedCommit, PagesNotYetEncodedAreInTheNextCommit) {
  constexpr std::uint64_t kLargeBytes = 16 * kMiB;
  create().create_region("main", kLargeBytes, options()).close();
  Region region = open();
  const auto fill = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::uint64_t at = 0; at < kLargeBytes; at += 8) word_at(region, at) = random();
  };
  fill(1);
  region.commit();
  fill(2);
  const auto wanted = content_of(region);
  fs_.fail_nth(FailedCommitCall::write, 1, Errc::io, true);
  EXPECT_THROW(region.commit(), Error);
  fs_.heal();
  region.commit();
  EXPECT_TRUE(content_of(Store::open(path()), "main") == wanted);
}

// The undo budget is 0, as if the old content did not fit into it. The packs cannot be read while
// the commit fails.
TEST_P(FailedCommit, ACommitThatCannotBeUndonePoisonsTheRegion) {
  make_store();
  Region region = open();
  const auto fill = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::uint64_t at = 0; at < kBytes; at += 8) word_at(region, at) = random();
  };
  fill(1);
  region.commit();
  const auto good = content_of(region);
  fill(2);
  const auto wanted = content_of(region);
  const std::string packs = path() + "/packs", moved = path() + "/moved";
  std::filesystem::copy(packs, moved);
  for (const auto& pack : std::filesystem::directory_iterator(packs)) {
    std::filesystem::resize_file(pack.path(), format::kPackHeaderBytes);
  }
  region::RegionAccess::impl_of(region).encoder->set_undo_budget(0);
  fs_.fail_nth(FailedCommitCall::write, 1, Errc::io, true);
  expect_error(Errc::io, {}, [&] { region.commit(); });
  fs_.heal();
  for (const auto& pack : std::filesystem::directory_iterator(moved)) {
    std::ifstream from(pack.path(), std::ios::binary);
    std::fstream(std::filesystem::path(packs) / pack.path().filename(),
                 std::ios::in | std::ios::out | std::ios::binary)
        << from.rdbuf();
  }
  std::filesystem::remove_all(moved);

  EXPECT_TRUE(content_of(region) == wanted) << "memory is as it was";
  word_at(region, 0) += 1;
  expect_error(Errc::poisoned, {"main", "open it again"}, [&] { region.commit(); });
  expect_error(Errc::poisoned, {"main", "open it again"}, [&] { region.snapshot("no"); });
  expect_error(Errc::poisoned, {"main", "open it again"}, [&] { region.rollback(); });
  region.close();
  EXPECT_TRUE(content_of(Store::open(path()), "main") == good);
  EXPECT_TRUE(Store::open(path()).verify({.read_data = true}).damages.empty());
  Region again = open();
  word_at(again, 8) = 77;
  const auto last = content_of(again);
  again.commit();
  EXPECT_TRUE(content_of(Store::open(path()), "main") == last);
}

TEST_P(FailedCommit, ManyFailedCommitsInARow) {
  make_store();
  Region region = open();
  std::mt19937_64 random(4);
  std::vector<std::byte> committed(kBytes);
  int failures = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    for (std::uint64_t i = random() % 3; i > 0; --i) change(region, random());
    word_at(region, random() % 100 * 8) += 1;
    if (random() % 3 != 0)
      fs_.fail_nth(FailedCommitCall::write, 1 + random() % 5, Errc::no_space, true);
    try {
      region.commit();
      committed = content_of(region);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Errc::no_space) << error.what();
      ++failures;
    }
    fs_.heal();
    ASSERT_TRUE(content_of(Store::open(path()), "main") == committed);
    if (random() % 4 == 0) {
      region.rollback();
      ASSERT_TRUE(content_of(region) == committed);
    }
    if (random() % 10 == 0) {
      region.close();
      region = open();
      ASSERT_TRUE(content_of(region) == committed);
    }
  }
  EXPECT_GT(failures, 5);
}

VELLUM_BOTH_ENGINES(FailedCommit);

}  // namespace
}  // namespace vellum::test
