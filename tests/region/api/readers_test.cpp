// Processes read versions and the head while another one commits. They always see some committed
// state, all of it, and none older than the last commit before they looked.
#include <algorithm>
#include <atomic>
#include <random>

#include "support/child.hpp"
#include "support/generation_fixture.hpp"
#include "support/shared.hpp"

namespace vellum::test {
namespace {

struct ReadersBoard : GenerationBoard {
  std::atomic<std::uint64_t> reads{0};
  std::atomic<bool> stop{false};
};

class Readers : public GenerationsTest {
 protected:
  // Commits until it is stopped.
  void write_generations(ReadersBoard& board) const {
    Region region = Store::open(path()).open_region("main", small());
    for (std::uint64_t g = 1; !board.stop; ++g) {
      board.started = g;
      Generations::write(region.data(), g);
      commit(region, board, g, g % 10 == 0);
    }
  }

  void read_heads(ReadersBoard& board, std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    std::optional<Store> store(Store::open(path()));
    std::vector<std::byte> copy(Generations::kBytes);
    while (!board.stop) {
      if (random() % 8 == 0) store.emplace(Store::open(path()));
      const std::uint64_t least = board.committed;
      std::uint64_t seen = 0, sequence = 0;
      if (random() % 3 == 0) {
        store->read("main", 0, copy.data(), copy.size());
        sequence = seen = Generations::read(copy.data());
      } else {
        const Region head = store->open_version("main", small());
        sequence = head.sequence();
        seen = Generations::read(head.data());
      }
      const std::uint64_t most = board.started;
      require(seen != Generations::kTorn, "the head is whole");
      require(seen >= least, std::to_string(seen) + " is not older than " + std::to_string(least));
      require(seen <= most, std::to_string(seen) + " had been begun: " + std::to_string(most));
      require(sequence == seen, "the sequence number is that of the content");
      board.reads += 1;
    }
  }

  void read_snapshots(ReadersBoard& board, std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    const Store store = Store::open(path());
    while (!board.stop) {
      const std::uint64_t newest = board.snapshot;
      if (newest == 0) continue;
      const std::uint64_t g = (1 + random() % (newest / 10)) * 10;
      const Region version = Store(store).open_version(snapshot_name(g), small());
      require(Generations::read(version.data()) == g, "the snapshot is what it was");
      board.reads += 1;
    }
  }
};

TEST_P(Readers, ReadersSeeWholeCommitsInOrder) {
  create_empty(tiny());
  Shared<ReadersBoard> board;
  std::vector<Child> children;
  children.push_back(start_child([&] { write_generations(*board); }));
  children.push_back(start_child([&] { read_heads(*board, 1); }));
  children.push_back(start_child([&] { read_heads(*board, 2); }));
  children.push_back(start_child([&] { read_snapshots(*board, 3); }));
  // Waits until enough has been written and read. A child that has ended has failed, and will say
  // why.
  const auto enough = static_cast<std::uint64_t>(rounds(300, 60));
  const auto runs = [](const Child& child) { return child.running(); };
  while ((board->committed < enough || board->reads < enough) &&
         std::all_of(children.begin(), children.end(), runs)) {
    usleep(10'000);
  }
  board->stop = true;
  for (auto& child : children) EXPECT_CHILD_EXIT(child.wait(), 0);
  Region region = Store::open(path()).open_region("main", small());
  EXPECT_EQ(Generations::read(region.data()), board->committed);
}

VELLUM_BOTH_ENGINES(Readers);

}  // namespace
}  // namespace vellum::test
