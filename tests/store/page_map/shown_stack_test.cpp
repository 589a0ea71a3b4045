// The visible entries of a stack of runs, against ShownPages of the same runs, and the cost of
// the steps between versions.
#include "store/page_map/shown_stack.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "store/gc/reach/version_walk.hpp"
#include "store/page_map/run_builder.hpp"
#include "store/page_map/shown_pages.hpp"

namespace vellum::store::test {
namespace {

using format::PageKind;
using format::PageNumber;
using Item = ShownStack::Item;
using Items = std::vector<Item>;

// In run order, with chains.
Items random_run(std::mt19937_64& random, std::uint32_t& next_id) {
  Items run;
  for (PageNumber page = random() % 20; page < 200;) {
    if (random() % 2 == 0) {
      const auto count = static_cast<std::uint32_t>(1 + random() % 30);
      run.push_back({page, count, next_id++, random() % 3 == 0 ? PageKind::zero : PageKind::base});
      page += count + random() % 10;
      continue;
    }
    for (auto n = 1 + random() % 3; n > 0; --n) {
      run.push_back({page, 1, next_id++, PageKind::delta});
    }
    if (random() % 2 == 0) run.push_back({page, 1, next_id++, PageKind::base});
    page += 1 + random() % 10;
  }
  return run;
}

class Watched {
 public:
  void push(Items run) {
    stack_.push(run);
    runs_.push_back(std::move(run));
  }
  void pop() {
    stack_.pop();
    runs_.pop_back();
  }
  std::size_t depth() const { return runs_.size(); }
  void expect_like_shown_pages() {
    ShownPages plain;
    for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
      for (const Item& item : *run) {
        std::uint64_t shown = 0;
        plain.take_parts(item.page, item.count, item.kind,
                         [&](std::uint32_t, std::uint32_t n) { shown += n; });
        ASSERT_EQ(pages_[item.id], shown) << "page " << item.page;
      }
    }
    ASSERT_EQ(stack_.nonzero_pages(), plain.nonzero_pages());
  }

 private:
  std::map<std::uint32_t, std::uint64_t> pages_;
  ShownStack stack_{[this](const ShownStack::Change& c) {
    if (c.shows) {
      pages_[c.id] += c.count;
    } else {
      pages_[c.id] -= c.count;
    }
  }};
  std::vector<Items> runs_;
};

TEST(ShownStackTest, LikeShownPagesAtEveryStep) {
  std::mt19937_64 random(11);
  std::uint32_t next_id = 0;
  Watched watched;
  for (int step = 0; step < 600; ++step) {
    if (watched.depth() > 0 && (watched.depth() > 8 || random() % 5 < 2)) {
      watched.pop();
    } else {
      watched.push(random_run(random, next_id));
    }
    ASSERT_NO_FATAL_FAILURE(watched.expect_like_shown_pages()) << "step " << step;
  }
}

TEST(ShownStackTest, ADeltaSaysWhatItStandsOn) {
  std::map<std::uint32_t, std::uint32_t> below;
  ShownStack stack([&](const ShownStack::Change& c) { below[c.id] = c.below; });
  stack.push(Items{{10, 5, 1, PageKind::base}});
  stack.push(Items{{12, 1, 3, PageKind::delta}, {12, 1, 2, PageKind::delta}});
  stack.push(Items{{40, 1, 4, PageKind::delta}});
  EXPECT_EQ(below, (std::map<std::uint32_t, std::uint32_t>{
                       {1, ShownStack::kNothing}, {2, 1}, {3, 2}, {4, ShownStack::kNothing}}));
}

// A line of commits of ten pages each, merged like checkpoints merge them; a version after each.
struct Line {
  std::vector<format::Version> versions;
  std::map<format::RecordRef, Items> runs;
  std::uint64_t entries = 0, entries_of_all_versions = 0;
};

Line make_line(std::size_t commits) {
  Line line;
  std::mt19937_64 random(3);
  std::map<std::size_t, std::vector<PageNumber>> pages_of;  // by offset of the root
  std::vector<format::RunRef> runs;
  for (std::size_t i = 1; i <= commits; ++i) {
    std::set<PageNumber> pages;
    while (pages.size() < 10) pages.insert(random() % 2000);
    runs.insert(runs.begin(), {{1, i * 64, 0}, pages.size()});
    const std::size_t merge = std::max<std::size_t>(runs_to_merge(runs), 1);
    for (std::size_t r = 1; r < merge; ++r) {
      const auto& older = pages_of[runs[r].root.offset_bytes];
      pages.insert(older.begin(), older.end());
    }
    runs.erase(runs.begin() + 1, runs.begin() + static_cast<std::ptrdiff_t>(merge));
    runs[0].entries = pages.size();
    pages_of[i * 64].assign(pages.begin(), pages.end());
    Items& run = line.runs[runs[0].root];
    for (const PageNumber p : pages) {
      run.push_back({p, 1, static_cast<std::uint32_t>(line.entries++), PageKind::base});
    }
    format::Version& version = line.versions.emplace_back();
    version.runs = runs;
    for (const auto& r : runs) line.entries_of_all_versions += r.entries;
  }
  return line;
}

TEST(ShownStackTest, ALineOfVersionsCostsItsRunsNotItsVersions) {
  const Line line = make_line(1500);
  std::vector<const format::Version*> versions;
  for (const auto& v : line.versions) versions.push_back(&v);
  std::uint64_t changes = 0;
  ShownStack stack([&](const ShownStack::Change&) { ++changes; });
  std::map<format::RecordRef, int> pushed;
  std::vector<bool> visited(versions.size());
  walk_versions(versions, {[&](const format::RunRef& ref, std::size_t) {
                             ++pushed[ref.root];
                             stack.push(line.runs.at(ref.root));
                           },
                           [&] { stack.pop(); },
                           [&](std::size_t version) {
                             visited[version] = true;
                             EXPECT_EQ(stack.depth(), line.versions[version].runs.size());
                           }});
  EXPECT_EQ(stack.depth(), 0u);
  for (const auto& [root, times] : pushed) EXPECT_EQ(times, 1) << root.offset_bytes;
  EXPECT_TRUE(std::find(visited.begin(), visited.end(), false) == visited.end());
  EXPECT_GT(line.entries_of_all_versions, 50 * line.entries);  // the cost of one pass per version
  EXPECT_LT(changes, 8 * line.entries);
}

}  // namespace
}  // namespace vellum::store::test
