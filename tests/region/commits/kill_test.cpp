// kill -9 at any time: every commit that had returned exists, and no commit exists in part.
//
// VELLUM_KILLS sets the number of kills for each engine.
#include <atomic>
#include <map>
#include <random>

#include "support/child.hpp"
#include "support/generation_fixture.hpp"
#include "support/shared.hpp"

namespace vellum::test {
namespace {

class Killed : public GenerationsTest {
 protected:
  // Transactions until the end.
  void write_generations(GenerationBoard& board, std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    Region region = Store::open(path()).open_region("main", small());
    std::uint64_t g = Generations::read(region.data());
    for (;;) {
      board.started = ++g;
      Generations::write(region.data(), g);
      const std::uint64_t what = random() % 16;
      if (what == 1) {
        region.rollback();
        Generations::write(region.data(), g);
      }
      if (what % 4 == 3) {  // the next generation is stored while this one is written out
        auto end = region.commit_async();
        board.started = g + 1;
        Generations::write(region.data(), g + 1);
        end.get();
        board.committed = g++;
      }
      commit(region, board, g, what == 0);
      if (what == 2) {
        region.close();
        region = Store::open(path()).open_region("main", small());
      }
    }
  }

  void check_after(const GenerationBoard& board) {
    Store store = Store::open(path());
    {
      const Region head = store.open_version("main", small());  // before anything is repaired
      check_generation(Generations::read(head.data()), board);
    }
    Region region = store.open_region("main", small());
    const std::uint64_t seen = Generations::read(region.data());
    check_generation(seen, board);
    // A snapshot that was being created may exist or not.
    if (board.snapshot != 0) snapshots_[board.snapshot];
    if (store.contains(snapshot_name(board.started))) snapshots_[board.started];
    check_snapshots(store);
  }

  static void check_generation(std::uint64_t seen, const GenerationBoard& board) {
    ASSERT_NE(seen, Generations::kTorn);
    ASSERT_GE(seen, board.committed);
    ASSERT_LE(seen, board.started);
  }

  // The newest ones and one of the others; sometimes all of them.
  void check_snapshots(Store& store) {
    const bool all = random_() % 50 == 0;
    const std::uint64_t chosen = snapshots_.empty() ? 0 : random_() % snapshots_.size();
    std::uint64_t index = 0;
    for (auto& [generation, content] : snapshots_) {
      const bool look = all || content.empty() || index == chosen;
      ++index;
      if (!look) continue;
      const Region version = store.open_version(snapshot_name(generation), small());
      ASSERT_EQ(Generations::read(version.data()), generation);
      const auto seen = content_of(version);
      if (content.empty()) content = seen;
      ASSERT_EQ(content, seen) << "snapshot of generation " << generation;
    }
  }

  void run(const StoreOptions& store_options, std::uint64_t kills) {
    create_empty(store_options);
    Shared<GenerationBoard> board;
    for (std::uint64_t i = 0; i < kills; ++i) {
      SCOPED_TRACE("kill " + std::to_string(i));
      Child child = start_child([&] { write_generations(*board, random_()); });
      // Mostly killed while it commits, sometimes while it opens.
      const std::uint64_t start = board->started;
      const std::uint64_t delay_us = random_() % 20'000;
      if (random_() % 8 != 0) {
        while (board->started == start && child.running()) usleep(200);
      }
      usleep(static_cast<useconds_t>(delay_us));
      child.kill(SIGKILL);
      EXPECT_CHILD_SIGNAL(child.wait(), SIGKILL);
      check_after(*board);
      if (HasFailure()) return;
      const Region head = Store::open(path()).open_version("main", small());
      board->started = board->committed = Generations::read(head.data());
    }
    Store store = Store::open(path());
    check_all_at_the_end(store);
    std::filesystem::remove_all(path());
    snapshots_.clear();
  }

  void check_all_at_the_end(Store& store) {
    for (const auto& [generation, content] : snapshots_) {
      ASSERT_EQ(content_of(store, snapshot_name(generation)), content);
    }
    expect_no_damage(store);
  }

  std::mt19937_64 random_{5};
  std::map<std::uint64_t, std::vector<std::byte>> snapshots_;  // empty: not read yet
};

TEST_P(Killed, AKillAtAnyTimeKeepsTheLastCommit) {
  const std::uint64_t kills = kills_wanted(120, 20);
  StoreOptions plain = tiny();
  plain.encoding.compression = Encoding::Compression::none;
  plain.encoding.block_bytes = 4096;
  const std::vector<StoreOptions> turns = {tiny(), StoreOptions(), plain};
  for (std::size_t i = 0; i < turns.size(); ++i) {
    run(turns[i], (kills + turns.size() - 1 - i) / turns.size());
    if (HasFailure()) return;
  }
}

VELLUM_BOTH_ENGINES(Killed);

}  // namespace
}  // namespace vellum::test
