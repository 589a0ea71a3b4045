// kill -9 at any time during large commits that repeat content of the store, while another process
// collects garbage.
//
// One process writes two branches alternately. Their content is from a few arrays, so that each
// refers to pages of the other, of its own past, and of snapshots that are removed. VELLUM_KILLS
// sets the number of kills for each engine.
#include <algorithm>
#include <array>
#include <atomic>
#include <random>

#include "support/child.hpp"
#include "support/generation_fixture.hpp"
#include "support/shared.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kKillBesideGcPages = 320, kArrays = 5, kWordsPerPage = kPage / 8;
constexpr std::uint64_t kLittleBytes = 160;  // half of a compressed page
constexpr std::uint64_t kNamedEvery = 3, kNamesKept = 3;
constexpr std::array<const char*, 2> kBranches{"left", "right"};

// How far the writer of each branch has got. Generation g is a commit on branch g % 2.
struct KillBesideGcBoard {
  struct Line {
    std::atomic<std::uint64_t> started{0}, committed{0};
  };
  std::array<Line, 2> lines;
  std::atomic<std::uint64_t> commits{0}, repeats{0};  // commits, and those that stored little
  std::atomic<std::uint64_t> collections{0};          // that gc has ended
};

// The content of a generation: the beginning of one array, the end of another; the last page names
// it.
class Content {
 public:
  explicit Content(std::uint64_t generation) : generation_(generation) {
    std::mt19937_64 random(generation);
    for (auto& part : parts_) part = {random() % kArrays, random() % 8};
    border_ = random() % kKillBesideGcPages;
  }

  void write(void* data) const {
    auto* const words = static_cast<std::uint64_t*>(data);
    for (std::uint64_t p = 0; p < kKillBesideGcPages; ++p) fill(p, words + p * kWordsPerPage);
  }
  bool is_in(const void* data) const {
    const auto* const words = static_cast<const std::uint64_t*>(data);
    std::array<std::uint64_t, kWordsPerPage> wanted;
    for (std::uint64_t p = 0; p < kKillBesideGcPages; ++p) {
      fill(p, wanted.data());
      if (std::memcmp(wanted.data(), words + p * kWordsPerPage, kPage) != 0) return false;
    }
    return true;
  }
  static std::uint64_t generation_in(const void* data) {
    return static_cast<const std::uint64_t*>(data)[(kKillBesideGcPages - 1) * kWordsPerPage];
  }

 private:
  struct PagesOfArray {
    std::uint64_t array = 0, shift = 0;
  };
  // Unlike any other page, and a tenth of it when compressed.
  void fill(std::uint64_t page, std::uint64_t* words) const {
    const PagesOfArray& part = parts_[page < border_ ? 0 : 1];
    std::mt19937_64 random(part.array * 10'000 + page + part.shift);
    std::generate(words, words + 40, std::ref(random));
    std::fill(words + 40, words + kWordsPerPage, random());
    if (page == kKillBesideGcPages - 1) words[0] = generation_;
  }

  std::uint64_t generation_, border_ = 0;
  std::array<PagesOfArray, 2> parts_;
};

class KilledBesideGc : public GenerationsTest {
 protected:
  RegionOptions large() const {
    RegionOptions options = small();
    options.capacity_bytes = kKillBesideGcPages * kPage;
    return options;
  }

  // Runs in a child until the child is killed.
  void write_generations(KillBesideGcBoard& board) const {
    std::array<Region, 2> regions;
    Store store = Store::open(path());
    std::uint64_t g = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      regions[i] = store.open_region(kBranches[i], large());
      g = std::max(g, Content::generation_in(regions[i].data()));
    }
    for (;;) {
      ++g;
      Region& region = regions[g % 2];
      board.lines[g % 2].started = g;
      Content(g).write(region.data());
      const bool named = g % kNamedEvery == 0;
      const CommitReport report = named ? region.snapshot(snapshot_name(g)) : region.commit();
      board.lines[g % 2].committed = g;
      ++board.commits;
      if (report.bytes_written < report.pages_changed * kLittleBytes) ++board.repeats;
      if (named && g > kNamedEvery * kNamesKept) forget(store, g - kNamedEvery * kNamesKept);
    }
  }
  static void forget(Store& store, std::uint64_t generation) {
    for (const auto& info : store.versions()) {
      if (!info.is_branch && std::stoull(info.name.substr(1)) <= generation) {
        store.remove_snapshot(info.name);
      }
    }
  }

  void collect(KillBesideGcBoard& board, std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    for (;;) {
      GcOptions options;
      options.recompress_level = random() % 2 == 0 ? 3 : 0;
      try {
        Store::open(path()).collect_garbage(options);
        ++board.collections;
      } catch (const Error& e) {
        if (e.code() != Errc::busy) throw;
      }
      usleep(static_cast<useconds_t>(random() % 30'000));
    }
  }

  void check_after(const KillBesideGcBoard& board) {
    Store store = Store::open(path());
    for (const auto& info : store.versions()) {
      SCOPED_TRACE(info.name);
      const Region version = store.open_version(info.name, large());
      const std::uint64_t g = Content::generation_in(version.data());
      if (info.is_branch) {
        const auto& line = board.lines[info.name == kBranches[0] ? 0 : 1];
        ASSERT_GE(g, line.committed);
        ASSERT_LE(g, line.started);
        if (g == 0) continue;
      } else {
        ASSERT_EQ(snapshot_name(g), info.name);
      }
      ASSERT_TRUE(Content(g).is_in(version.data()));
    }
    expect_no_damage(store);
  }

  std::mt19937_64 random_{7};
};

TEST_P(KilledBesideGc, AKillDuringGcKeepsRepeatedContent) {
  Store store = create(tiny());
  for (const char* name : kBranches)
    store.create_region(name, kKillBesideGcPages * kPage, large()).close();
  const Shared<KillBesideGcBoard> board;
  const std::uint64_t kills = kills_wanted(16, 6);
  for (std::uint64_t i = 0; i < kills && !HasFailure(); ++i) {
    SCOPED_TRACE("kill " + std::to_string(i));
    Child writer = start_child([&] { write_generations(*board); });
    Child gc = start_child([&] { collect(*board, random_()); });
    // During gc, a commit does not look for pages that the store holds, so repeats are rarer.
    const std::uint64_t commits = board->commits;
    const auto enough = [&] {
      return board->commits >= commits + 8 && board->repeats > i / 2 && board->collections > i / 2;
    };
    while (!enough() && writer.running() && gc.running()) usleep(200);
    usleep(static_cast<useconds_t>(random_() % 20'000));
    // Now one of them dies first, now the other.
    Child& first = i % 2 == 0 ? writer : gc;
    Child& second = i % 2 == 0 ? gc : writer;
    first.kill(SIGKILL);
    usleep(static_cast<useconds_t>(random_() % 20'000));
    second.kill(SIGKILL);
    EXPECT_CHILD_SIGNAL(writer.wait(), SIGKILL);
    EXPECT_CHILD_SIGNAL(gc.wait(), SIGKILL);
    check_after(*board);
  }
  std::printf("%s: %llu kills, %llu commits, %llu of them repeats, %llu collections\n",
              engine_name(GetParam()), static_cast<unsigned long long>(kills),
              static_cast<unsigned long long>(board->commits),
              static_cast<unsigned long long>(board->repeats),
              static_cast<unsigned long long>(board->collections));
}

VELLUM_BOTH_ENGINES(KilledBesideGc);

}  // namespace
}  // namespace vellum::test
