// Recorded working sets are pushed with their versions, have pieces of their own, and are available
// to readers and clones.
#include <gtest/gtest.h>

#include <thread>

#include "format/samples.hpp"
#include "remote/lazy_fixture.hpp"
#include "remote/remote_samples.hpp"
#include "support/engines.hpp"

namespace vellum::remote::test {
namespace {

using namespace std::chrono_literals;

constexpr format::PageNumber kChunkPages = 16;

class RemoteWorkingSetTest : public LazyTest {
 protected:
  // Every fourth chunk of `large` is in the working set, from the end to the start.
  RemoteWorkingSetTest() {
    make_large();
    for (format::PageNumber p = large.pages(); p >= 4 * kChunkPages; p -= 4 * kChunkPages) {
      used.push_back({p - kChunkPages, kChunkPages});
    }
  }
  VersionPieces pieces_there(const std::string& name) {
    const auto there = objects();
    const Remote remote(*there, store->store_seal());
    return remote.pieces_of(remote.newest_head().head.find(name)->list);
  }
  // The number of pieces that opening fetches; the pages of the set need no others.
  void expect_pages_by_opening(const store::PageSource& source, const Ranges& ranges,
                               int requests) {
    for (int i = 0; i < 1000 && interference->gets_of(kPiecePrefix) < requests; ++i) {
      std::this_thread::sleep_for(10ms);
    }
    ASSERT_EQ(interference->gets_of(kPiecePrefix), requests);
    for (const format::PageRange& range : ranges) {
      std::vector<std::byte> bytes(range.count * format::kPageBytes);
      source.read(range.first, range.count, bytes.data());
      EXPECT_EQ(std::memcmp(bytes.data(), large.bytes.data() + range.first * format::kPageBytes,
                            bytes.size()),
                0)
          << "page " << range.first;
    }
    EXPECT_EQ(interference->gets_of(kPiecePrefix), requests);
  }

  Ranges used;
};

TEST_F(RemoteWorkingSetTest, OpeningFetchesTheSetAndNothingElse) {
  record_set(*store, "large", used);
  push_names(*store, {"large"});
  const VersionPieces there = pieces_there("large");
  EXPECT_EQ(there.in_use.ranges, used);
  ASSERT_FALSE(there.in_use.pieces.empty());
  EXPECT_LT(there.in_use.pieces.size(), there.list.size());
  std::uint64_t all = 0, of_set = 0;
  for (const PieceName& piece : there.list) all += piece.size_bytes;
  for (const std::uint32_t i : there.in_use.pieces) of_set += there.list[i].size_bytes;
  EXPECT_LT(of_set, all * 3 / 8);  // a quarter is in the set
  const auto lazy = open_lazily(options());
  const auto source = store::test::open_version(*lazy, "large");
  EXPECT_EQ(recorded_set(*lazy, "large"), used);
  expect_pages_by_opening(*source, used, static_cast<int>(there.in_use.pieces.size()));
  expect_good_remote();
}

TEST_F(RemoteWorkingSetTest, ALaterPushKeepsItsPiecesSeparate) {
  record_set(*store, "large", used);
  push_names(*store, {"large"});
  std::mt19937_64 random(4);
  for (int i = 0; i < 3; ++i) {
    for (format::PageNumber p = 0; p < large.pages(); p += 8)
      store::test::fill_text(large, p, random);
    commit(*BranchWriter::open(*store, "large"), large, true);
    push_names(*store, {"large"});
  }
  {
    const auto there = objects();
    const Remote remote(*there, store->store_seal());
    collect_remote(remote, false, nullptr);
  }
  const auto lazy = open_lazily(options());
  const auto source = store::test::open_version(*lazy, "large");
  expect_pages_by_opening(*source, used,
                          static_cast<int>(pieces_there("large").in_use.pieces.size()));
  store::test::expect_same(*source, large.bytes);
  expect_good_remote();
}

TEST_F(RemoteWorkingSetTest, ASnapshotHasItsOwnSet) {
  BranchWriter::open(*store, "large")->publish_snapshot("first", "");
  record_set(*store, "first", used);
  push_names(*store, {"first"});
  push_names(*store, {"large"});
  const auto lazy = open_lazily(options());
  store::test::open_version(*lazy, "first");
  EXPECT_EQ(recorded_set(*lazy, "first"), used);
  EXPECT_TRUE(pieces_there("large").in_use.ranges.empty());
}

TEST_F(RemoteWorkingSetTest, ASmallSetHasNoPieceOfItsOwn) {
  const Ranges few = {{800, 2}, {4, 1}};
  record_set(*store, "large", few);
  push_names(*store, {"large"});
  const VersionPieces there = pieces_there("large");
  EXPECT_EQ(there.in_use.ranges, few);
  EXPECT_TRUE(there.in_use.pieces.empty());  // the set is a small part of each piece
  const auto lazy = open_lazily(options());
  store::test::expect_same(*store::test::open_version(*lazy, "large"), large.bytes);
}

TEST_F(RemoteWorkingSetTest, RangesPastTheEndOrTheLimitAreNotPushed) {
  Ranges many = {{large.pages() - 1, 50}, {large.pages() + 7, 1}};
  for (std::size_t i = 0; i < kMaxRangesInUse; ++i) many.push_back({i * 7 % large.pages(), 5});
  record_set(*store, "large", many);
  push_names(*store, {"large"});
  const Ranges there = pieces_there("large").in_use.ranges;
  ASSERT_FALSE(there.empty());
  EXPECT_EQ(there[0], (format::PageRange{large.pages() - 1, 1}));
  std::uint64_t pages = 0;
  for (const format::PageRange& range : there) pages += range.count;
  EXPECT_EQ(pages, kMaxPagesInUse);
}

TEST_F(RemoteWorkingSetTest, ClonesHaveTheSet) {
  record_set(*store, "large", used);
  push_names(*store, {"large"});
  EXPECT_EQ(recorded_set(*clone_to("c"), "large"), used);
  clone(base::posix_fs(), url(), dir.path("lazy"), {{}, true}, nullptr);
  const auto lazy = StoreDirectory::open(base::posix_fs(), dir.path("lazy"));
  EXPECT_EQ(recorded_set(*lazy, "large"), used);
}

TEST_F(RemoteWorkingSetTest, APullKeepsALocalSet) {
  record_set(*store, "large", used);
  push_names(*store, {"large"});
  const auto copy = clone_to("c");
  const Ranges own = {{7, 3}};
  record_set(*copy, "large", own);
  commit(*BranchWriter::open(*store, "large"), large, true);
  push_names(*store, {"large"});
  pull_names(*copy);
  EXPECT_EQ(recorded_set(*copy, "large"), own);
}

class RemoteWorkingSetRegionTest : public RemoteWorkingSetTest,
                                   public testing::WithParamInterface<Engine> {};

// The region fills the pages without a touch.
TEST_P(RemoteWorkingSetRegionTest, ARegionOpensWithTheSet) {
  if (!vellum::test::engine_available(GetParam())) GTEST_SKIP() << vellum::test::kNoUffd;
  record_set(*store, "large", used);
  push_names(*store, {"large"});
  Store lazy = open_store(options());
  RegionOptions region_options;
  region_options.engine = GetParam();
  region_options.working_set = true;
  const Region region = lazy.open_version("large", region_options);
  const std::uint64_t wanted = used.size() * kChunkPages * format::kPageBytes;
  for (int i = 0; i < 1000 && region.memory_use().resident_bytes < wanted; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_GE(region.memory_use().resident_bytes, wanted);
  EXPECT_LT(region.memory_use().resident_bytes, 2 * wanted);
  expect_bytes(region, large.bytes);
}

INSTANTIATE_TEST_SUITE_P(, RemoteWorkingSetRegionTest,
                         testing::Values(Engine::uffd, Engine::sigsegv),
                         vellum::test::engine_test_name);

TEST(ListOfPieces, AWorkingSetThatIsNotOfItsPiecesIsRefused) {
  const format::Uuid id = format::samples::store_id();
  const auto problem = [&](const PagesInUse& in_use) {
    VersionPieces list = samples::sample_list(), out;
    list.in_use = in_use;
    const char* const text = decode_piece_list(encode_piece_list(list, id), id, out);
    return std::string(text == nullptr ? "" : text);
  };
  EXPECT_EQ(problem({{{1, 2}}, {0, 1}}), "");
  EXPECT_EQ(problem({{{1, 2}}, {}}), "");
  EXPECT_EQ(problem({{}, {}}), "");
  EXPECT_EQ(problem({{{1, 2}}, {2}}), "malformed");
  EXPECT_EQ(problem({{{1, 2}}, {1, 1}}), "malformed");
  EXPECT_EQ(problem({{{1, 2}}, {0, 1, 1}}), "malformed");
  EXPECT_EQ(problem({{{format::kMaxRegionBytes / format::kPageBytes - 1, 2}}, {0}}), "malformed");
  EXPECT_EQ(problem({Ranges(kMaxRangesInUse + 1, {0, 1}), {0}}), "malformed");
}

}  // namespace
}  // namespace vellum::remote::test
