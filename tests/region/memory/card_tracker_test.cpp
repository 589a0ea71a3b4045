// Regions whose stores are marked: commits have the marked stores, with every engine.
#include <fmt/format.h>
#include <vellum/cards.h>

#include <cstring>
#include <random>

#include "region/region_impl.hpp"
#include "store/branch/fault_fs.hpp"
#include "store/catalog/store_directory.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class CardTrackerNoTsan : public StoreTest {
 protected:
  RegionOptions with(Tracker tracker) const {
    RegionOptions out = options();
    out.tracker = tracker;
    return out;
  }
  static void store_word(const Region& region, std::uint64_t offset, std::uint64_t value) {
    word_at(region, offset) = value;
    vellum_mark(bytes_of(region) + offset, 8);
  }
};

TEST_P(CardTrackerNoTsan, MarkedStoresAreCommitted) {
  Store store = create();
  Region region = store.create_region("main", 64 * kMiB, with(Tracker::cards));
  EXPECT_EQ(0x2U, reinterpret_cast<std::uintptr_t>(region.data()) >> 44);
  std::vector<std::byte> model(64 * kMiB);
  std::mt19937 random(5);  // NOLINT: the same run each time
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t offset = random() % (8 * kMiB) * 8;
      const std::uint64_t value = random();
      store_word(region, offset, value);
      std::memcpy(model.data() + offset, &value, 8);
    }
    const CommitReport report = region.commit();
    EXPECT_GT(report.pages_changed, 0U);
    EXPECT_TRUE(GetParam() == Engine::mapped || report.pages_dirty <= 200);
    if (round == 15) region.snapshot("middle");
  }
  EXPECT_EQ(0U, region.commit().pages_dirty);
  EXPECT_EQ(model, content_of(store, "main"));
  void* const address = region.data();
  region.close();
  Region again = store.open_region("main", with(Tracker::cards));
  EXPECT_EQ(address, again.data());
  EXPECT_EQ(model, content_of(again));
}

TEST_P(CardTrackerNoTsan, OnlyThePageTrackerFindsUnmarkedStores) {
  if (GetParam() == Engine::mapped) GTEST_SKIP() << "always looks for pages, too";
  Store store = create();
  Region region = store.create_region("main", kMiB, with(Tracker::cards));
  word_at(region, 5 * kPage) = 1;
  region.commit();
  EXPECT_TRUE(all_zero(content_of(store, "main").data(), kMiB));
  region.close();
  Region both = store.open_region("main", with(Tracker::cards_and_pages));
  word_at(both, 5 * kPage) = 1;
  store_word(both, 9 * kPage, 2);
  EXPECT_EQ(2U, both.commit().pages_changed);
  EXPECT_EQ(content_of(both), content_of(store, "main"));
}

// A commit compares only the marked lines of a page.
TEST_P(CardTrackerNoTsan, ACommitTakesOnlyTheMarkedLinesOfAPage) {
  if (GetParam() == Engine::mapped) GTEST_SKIP() << "always looks for pages, too";
  Store store = create();
  Region region = store.create_region("main", kMiB, with(Tracker::cards));
  store_word(region, 5 * kPage, 1);
  region.commit();
  store_word(region, 5 * kPage + 512, 2);
  store_word(region, 5 * kPage + 4088, 3);
  word_at(region, 5 * kPage + 1024) = 4;  // not marked
  region.commit();
  const auto committed = content_of(store, "main");
  const auto word = [&](std::uint64_t offset) {
    std::uint64_t value = 0;
    std::memcpy(&value, committed.data() + 5 * kPage + offset, sizeof value);
    return value;
  };
  EXPECT_EQ(word(0), 1U);
  EXPECT_EQ(word(512), 2U);
  EXPECT_EQ(word(4088), 3U);
  EXPECT_EQ(word(1024), 0U);
}

TEST_P(CardTrackerNoTsan, MarksOfAFailedCommitAreInTheNext) {
  for (const Tracker tracker : {Tracker::cards, Tracker::cards_and_pages}) {
    for (const bool verify : {false, true}) {
      RegionOptions wanted = with(tracker);
      wanted.verify_cards = verify;
      const std::string at = directory_ / fmt::format("s{}{}", static_cast<int>(tracker), verify);
      Store::create(at).create_region("main", kMiB, wanted).close();
      store::test::FaultFs fs(base::posix_fs());
      Region region =
          region::RegionAccess::open_branch(store::StoreDirectory::open(fs, at), "main", wanted);
      store_word(region, 5 * kPage, 1);
      region.commit();
      store_word(region, 5 * kPage, 2);
      store_word(region, 9 * kPage, 2);
      fs.fail_nth(store::test::Call::write, 1, Errc::io, true);
      EXPECT_THROW((void)region.commit(), Error);
      fs.heal();
      store_word(region, 5 * kPage + 2048, 3);
      store_word(region, 7 * kPage, 3);
      region.commit();
      const auto content = content_of(region);
      region.close();
      EXPECT_EQ(content_of(Store::open(at), "main"), content);
    }
  }
}

TEST_P(CardTrackerNoTsan, VerificationNamesTheMissedStoresPage) {
  Store store = create();
  RegionOptions verified = with(Tracker::cards);
  verified.verify_cards = true;
  Region region = store.create_region("main", kMiB, verified);
  store_word(region, 0, 1);
  region.commit();
  store_word(region, 0, 2);
  store_word(region, 7 * kPage, 3);
  word_at(region, 7 * kPage + 200) = 4;
  for (int i = 0; i < 2; ++i)
    expect_error(Errc::corrupted, {"page 7 (offset 28864,"}, [&] { region.commit(); });
  EXPECT_EQ(1U, store.version("main").sequence);
  vellum_mark(bytes_of(region) + 7 * kPage + 200, 8);
  EXPECT_EQ(2U, region.commit().pages_changed);
  EXPECT_EQ(content_of(region), content_of(store, "main"));
}

TEST_P(CardTrackerNoTsan, RollbackDiscardsMarkedStores) {
  Store store = create();
  Region region = store.create_region("main", kMiB, with(Tracker::cards));
  store_word(region, 4096, 1);
  region.commit();
  store_word(region, 4096, 2);
  store_word(region, 90000, 3);
  region.rollback();
  EXPECT_EQ(1U, word_at(region, 4096));
  EXPECT_EQ(0U, word_at(region, 90000));
  store_word(region, 90000, 4);
  EXPECT_EQ(1U, region.commit().pages_changed);
}

TEST_P(CardTrackerNoTsan, EvictedMarkedPagesAreCommitted) {
  if (GetParam() == Engine::mapped) GTEST_SKIP() << "the kernel pages";
  Store store = create();
  RegionOptions small = with(Tracker::cards);
  small.memory_limit_bytes = 8 * kMiB;
  Region region = store.create_region("main", 64 * kMiB, small);
  for (int round = 1; round <= 2; ++round) {
    for (std::uint64_t at = 0; at < 64 * kMiB; at += kPage)
      store_word(region, at + 8, at + static_cast<std::uint64_t>(round));
    region.commit();
  }
  EXPECT_GT(region.memory_use().evicted_bytes, 0U);
  const auto content = content_of(store, "main");
  for (std::uint64_t at = 0; at < 64 * kMiB; at += kPage) {
    std::uint64_t value = 0;
    std::memcpy(&value, content.data() + at + 8, 8);
    ASSERT_EQ(at + 2, value);
  }
}

TEST_P(CardTrackerNoTsan, AddressesThatCannotBeTrackedAreRefused) {
  Store store = create();
  RegionOptions wrong = with(Tracker::cards);
  wrong.base_address = 0x7e0000000000;
  wrong.fixed_address = true;
  expect_error(Errc::invalid_argument, {"4 GiB"},
               [&] { store.create_region("main", kMiB, wrong); });
  RegionOptions reserved = with(Tracker::cards);
  reserved.over_reservation = true;
  reserved.base_address = 0x200000000000;
  reserved.capacity_bytes = kMiB;
  expect_error(Errc::invalid_argument, {"over_reservation"},
               [&] { store.create_region("other", kMiB, reserved); });
}

VELLUM_BOTH_ENGINES(CardTrackerNoTsan);

}  // namespace
}  // namespace vellum::test
