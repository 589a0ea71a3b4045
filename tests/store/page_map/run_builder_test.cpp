// Merging runs, against a page-by-page model.
#include "store/page_map/run_builder.hpp"
#include "store/page_map/run_reader.hpp"

#include "store/support.hpp"

namespace vellum::store::test {
namespace {

using format::MapEntry;
using format::PageKind;

// A run as a map: page -> its chain.
using Chains = std::map<PageNumber, std::vector<MapEntry>>;

Chains expand(const std::vector<MapEntry>& run) {
  Chains out;
  for (const MapEntry& e : run) {
    for (std::uint32_t i = 0; i < e.count; ++i) {
      MapEntry one = e;
      one.page += i;
      one.count = 1;
      if (one.kind == PageKind::base) one.slot += i;
      out[one.page].push_back(one);
    }
  }
  return out;
}

Chains overlay(const std::vector<std::vector<MapEntry>>& runs) {
  Chains out;
  for (const auto& run : runs) {
    for (const auto& [page, chain] : expand(run)) {
      auto& have = out[page];
      if (!have.empty() && have.back().kind != PageKind::delta) continue;
      have.insert(have.end(), chain.begin(), chain.end());
    }
  }
  return out;
}

std::vector<MapEntry> random_run(std::mt19937_64& random, std::uint64_t pack,
                                 std::map<PageNumber, std::uint8_t>& depth) {
  std::vector<MapEntry> run;
  PageNumber page = random() % 5;
  while (page < 80) {
    MapEntry e;
    e.page = page;
    e.record = {pack, 64 + 8 * (random() % 3), 1};
    e.slot = static_cast<std::uint32_t>(page);
    switch (random() % 4) {
      case 0:
        e.kind = PageKind::base;
        e.count = static_cast<std::uint32_t>(1 + random() % 20);
        break;
      case 1:
        e.kind = PageKind::zero;
        e.record = {};
        e.slot = 0;
        e.count = static_cast<std::uint32_t>(1 + random() % 6);
        break;
      default:
        e.kind = PageKind::delta;
        e.depth = static_cast<std::uint8_t>(depth[page] + 1);
    }
    for (PageNumber p = page; p < page + e.count; ++p) depth[p] = e.depth;
    run.push_back(e);
    if (e.kind == PageKind::delta && random() % 4 == 0) {
      run.back().depth = depth[page] = 1;
      MapEntry base = run.back();
      base.kind = PageKind::base;
      base.depth = 0;
      base.record.tag = 9;
      run.push_back(base);
    }
    page += e.count + (random() % 2 == 0 ? 0 : random() % 8);
  }
  return run;
}

TEST(MergeRuns, GivesWhatTheRunsGiveOneAfterTheOther) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::map<PageNumber, std::uint8_t> depth;
    std::vector<std::vector<MapEntry>> runs(1 + random() % 5);
    for (std::size_t i = runs.size(); i-- > 0;) runs[i] = random_run(random, i + 1, depth);
    const auto merged = merge_runs(runs, false);
    EXPECT_EQ(expand(merged), overlay(runs));
    for (std::size_t i = 1; i < merged.size(); ++i) {
      const MapEntry& a = merged[i - 1];
      const MapEntry& b = merged[i];
      const bool chain = a.page == b.page && a.count == 1 && b.count == 1 &&
                         a.kind == PageKind::delta && b.depth < a.depth;
      ASSERT_TRUE(chain || a.page + a.count <= b.page);
    }
    // As the oldest run, it omits zeros and nothing else.
    Chains expected = overlay(runs);
    for (auto it = expected.begin(); it != expected.end();) {
      std::erase_if(it->second, [](const MapEntry& e) { return e.kind == PageKind::zero; });
      it = it->second.empty() ? expected.erase(it) : std::next(it);
    }
    EXPECT_EQ(expand(merge_runs(runs, true)), expected);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(MergeRuns, JoinsNeighbours) {
  const format::RecordRef r{1, 64, 1};
  const std::vector<MapEntry> run = {{0, 2, 0, PageKind::base, 0, r},
                                     {2, 3, 2, PageKind::base, 0, r},
                                     {5, 1, 6, PageKind::base, 0, r},
                                     {6, 1, 0, PageKind::zero, 0, {}},
                                     {7, 9, 0, PageKind::zero, 0, {}}};
  const auto merged = merge_runs({run}, false);
  ASSERT_EQ(merged.size(), 3u);
  EXPECT_EQ(merged[0].count, 5u);
  EXPECT_EQ(merged[2].count, 10u);
}

TEST(RunsToMerge, KeepsTheNumberOfRunsSmallAndTheWorkToo) {
  std::mt19937_64 random(2);
  for (const bool equal : {true, false}) {
    std::vector<format::RunRef> runs;
    std::uint64_t written = 0, added = 0;
    for (int i = 0; i < 5000; ++i) {
      format::RunRef next;
      next.entries = equal ? 1000 : 1 + (1ull << random() % 16);
      added += next.entries;
      runs.insert(runs.begin(), next);
      const std::size_t n = runs_to_merge(runs);
      if (n > 1) {
        for (std::size_t k = 1; k < n; ++k) runs[0].entries += runs[k].entries;
        runs.erase(runs.begin() + 1, runs.begin() + static_cast<std::ptrdiff_t>(n));
      }
      written += runs[0].entries;
      ASSERT_LE(runs.size(), kMaxRuns);
    }
    EXPECT_LT(written, added * 20) << equal;
  }
}

TEST(WriteRun, LargeRunsAreCutIntoBlocksBetweenChains) {
  TempDirectory directory;
  auto store = StoreDirectory::create(base::posix_fs(), directory.path("s"), small_options());
  format::Version version;
  version.branch_id = 7;
  PackWriter packs(*store, 7, version);
  const std::vector<std::byte> payload(kPageBytes);
  const auto ref =
      packs.append({format::RecordType::pages, base::Compression::none, kPageBytes, payload, 1});
  std::vector<MapEntry> entries;
  for (PageNumber p = 0; p < 3000; ++p) {
    for (std::uint8_t d = 3; d > 0; --d) entries.push_back({2 * p, 1, d, PageKind::delta, d, ref});
    entries.push_back({2 * p, 1, 0, PageKind::base, 0, ref});
  }
  EncodingThreads threads(store->pool(), packs.compressor());
  const auto run = write_run(packs, threads, entries);
  EXPECT_EQ(run.entries, entries.size());
  packs.sync();
  const auto loaded = load_run(*store, run);
  EXPECT_EQ(loaded->root.packs, std::vector<std::uint64_t>{ref.pack});
  EXPECT_GE(loaded->root.blocks.size(), 12u);
  EXPECT_EQ(read_entries(*store, *loaded), entries);
  const std::shared_ptr<const LoadedRun> runs[] = {loaded, loaded};
  EXPECT_EQ(read_all_entries(*store, runs), (std::vector{entries, entries}));
}

}  // namespace
}  // namespace vellum::store::test
