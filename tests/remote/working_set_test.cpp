// Recorded working sets go to a remote with their versions, have pieces of their own there, and come
// back: to readers and to clones.
#include <gtest/gtest.h>

#include <thread>

#include "format/samples.hpp"
#include "remote/lazy_fixture.hpp"
#include "remote/remote_samples.hpp"
#include "store/catalog/working_set_file.hpp"
#include "support/engines.hpp"

namespace vellum::remote::test {
namespace {

using namespace std::chrono_literals;
using Ranges = std::vector<format::PageRange>;

constexpr format::PageNumber kPages = 2048, kChunkPages = 16;

class RemoteWorkingSetTest : public LazyTest {
 protected:
  // Branch `large`, whose every fourth chunk is in use, from the end to the start.
  void make_large() {
    store->create_branch("large", kPages * format::kPageBytes, 0);
    for (format::PageNumber p = 0; p < kPages; ++p) store::test::fill_text(model, p, random);
    commit(*BranchWriter::open(*store, "large"), model, true);
    for (format::PageNumber p = kPages; p >= 4 * kChunkPages; p -= 4 * kChunkPages) {
      used.push_back({p - kChunkPages, kChunkPages});
    }
  }
  void record(StoreCore& into, const std::string& name, const Ranges& ranges) {
    const auto owner = store::working_set_owner(store::resolve_version(into, name));
    store::write_working_set(into, name, {owner, ranges});
  }
  static Ranges recorded(StoreCore& in, const std::string& name) {
    const auto owner = store::working_set_owner(store::resolve_version(in, name));
    return store::read_working_set(in, name, owner);
  }
  VersionPieces pieces_there(const std::string& name) {
    const auto there = objects();
    const Remote remote(*there, store->superblock().store_id);
    return remote.pieces_of(remote.newest_head().head.find(name)->list);
  }
  // Opening fetches so many pieces, and the pages of the set need no other.
  void expect_pages_by_opening(const store::PageSource& source, const Ranges& ranges,
                               int requests) {
    for (int i = 0; i < 1000 && interference->gets_of(kPiecePrefix) < requests; ++i) {
      std::this_thread::sleep_for(10ms);
    }
    ASSERT_EQ(interference->gets_of(kPiecePrefix), requests);
    for (const format::PageRange& range : ranges) {
      std::vector<std::byte> bytes(range.count * format::kPageBytes);
      source.read(range.first, range.count, bytes.data());
      EXPECT_EQ(std::memcmp(bytes.data(), model.bytes.data() + range.first * format::kPageBytes,
                            bytes.size()),
                0)
          << "page " << range.first;
    }
    EXPECT_EQ(interference->gets_of(kPiecePrefix), requests);
  }

  Model model{kPages};
  std::mt19937_64 random{3};
  Ranges used;
};

TEST_F(RemoteWorkingSetTest, OpeningFetchesItAndNothingElse) {
  make_large();
  record(*store, "large", used);
  push_names(*store, {"large"});
  const VersionPieces there = pieces_there("large");
  EXPECT_EQ(there.in_use.ranges, used);
  ASSERT_FALSE(there.in_use.pieces.empty());
  EXPECT_LT(there.in_use.pieces.size(), there.list.size());
  std::uint64_t all = 0, of_set = 0;
  for (const PieceName& piece : there.list) all += piece.size_bytes;
  for (const std::uint32_t i : there.in_use.pieces) of_set += there.list[i].size_bytes;
  EXPECT_LT(of_set, all * 3 / 8);  // a fourth is in use
  const auto lazy = open_lazily(options());
  const auto source = store::test::open_version(*lazy, "large");
  EXPECT_EQ(recorded(*lazy, "large"), used);
  expect_pages_by_opening(*source, used, static_cast<int>(there.in_use.pieces.size()));
  expect_good_remote();
}

TEST_F(RemoteWorkingSetTest, ALaterPushKeepsItApart) {
  make_large();
  record(*store, "large", used);
  push_names(*store, {"large"});
  for (int i = 0; i < 3; ++i) {
    for (format::PageNumber p = 0; p < kPages; p += 8) store::test::fill_text(model, p, random);
    commit(*BranchWriter::open(*store, "large"), model, true);
    push_names(*store, {"large"});
  }
  {
    const auto there = objects();
    const Remote remote(*there, store->superblock().store_id);
    collect_remote(remote, false, nullptr);
  }
  const auto lazy = open_lazily(options());
  const auto source = store::test::open_version(*lazy, "large");
  expect_pages_by_opening(*source, used,
                          static_cast<int>(pieces_there("large").in_use.pieces.size()));
  store::test::expect_same(*source, model.bytes);
  expect_good_remote();
}

TEST_F(RemoteWorkingSetTest, ASnapshotHasItsOwn) {
  make_large();
  BranchWriter::open(*store, "large")->publish_snapshot("first", "");
  record(*store, "first", used);
  push_names(*store, {"first"});
  push_names(*store, {"large"});
  const auto lazy = open_lazily(options());
  store::test::open_version(*lazy, "first");
  EXPECT_EQ(recorded(*lazy, "first"), used);
  EXPECT_TRUE(pieces_there("large").in_use.ranges.empty());
}

TEST_F(RemoteWorkingSetTest, ASmallOneHasNoPieceOfItsOwn) {
  make_large();
  const Ranges few = {{800, 2}, {4, 1}};
  record(*store, "large", few);
  push_names(*store, {"large"});
  const VersionPieces there = pieces_there("large");
  EXPECT_EQ(there.in_use.ranges, few);
  EXPECT_TRUE(there.in_use.pieces.empty());  // it is a small part of any piece
  const auto lazy = open_lazily(options());
  store::test::expect_same(*store::test::open_version(*lazy, "large"), model.bytes);
}

TEST_F(RemoteWorkingSetTest, WhatLiesPastTheEndOrIsTooMuchStaysHere) {
  make_large();
  Ranges many = {{kPages - 1, 50}, {kPages + 7, 1}};
  for (std::size_t i = 0; i < kMostRangesInUse; ++i) many.push_back({i * 7 % kPages, 5});
  record(*store, "large", many);
  push_names(*store, {"large"});
  const Ranges there = pieces_there("large").in_use.ranges;
  ASSERT_FALSE(there.empty());
  EXPECT_EQ(there[0], (format::PageRange{kPages - 1, 1}));
  std::uint64_t pages = 0;
  for (const format::PageRange& range : there) pages += range.count;
  EXPECT_EQ(pages, kMostPagesInUse);
}

TEST_F(RemoteWorkingSetTest, ClonesHaveIt) {
  make_large();
  record(*store, "large", used);
  push_names(*store, {"large"});
  EXPECT_EQ(recorded(*clone_to("c"), "large"), used);
  clone(base::posix_fs(), url(), dir.path("lazy"), {{}, true}, nullptr);
  const auto lazy = StoreCore::open(base::posix_fs(), dir.path("lazy"));
  EXPECT_EQ(recorded(*lazy, "large"), used);
}

TEST_F(RemoteWorkingSetTest, APullKeepsWhatIsRecordedHere) {
  make_large();
  record(*store, "large", used);
  push_names(*store, {"large"});
  const auto copy = clone_to("c");
  const Ranges own = {{7, 3}};
  record(*copy, "large", own);
  commit(*BranchWriter::open(*store, "large"), model, true);
  push_names(*store, {"large"});
  pull_names(*copy);
  EXPECT_EQ(recorded(*copy, "large"), own);
}

class RemoteWorkingSetRegionTest : public RemoteWorkingSetTest,
                                   public testing::WithParamInterface<Engine> {};

// The region brings the pages in by itself.
TEST_P(RemoteWorkingSetRegionTest, ARegionOpensWithIt) {
  if (!vellum::test::engine_available(GetParam())) GTEST_SKIP() << vellum::test::kNoUffd;
  make_large();
  record(*store, "large", used);
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
  expect_bytes(region, model.bytes);
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
  EXPECT_EQ(problem({Ranges(kMostRangesInUse + 1, {0, 1}), {0}}), "malformed");
}

}  // namespace
}  // namespace vellum::remote::test
