// Sixteen processes want one branch. The one that has it commits, the others read, and the one that
// has it is killed again and again.
//
// VELLUM_KILLS sets the number of kills for each engine.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>

#include "support/child.hpp"
#include "support/generation_fixture.hpp"
#include "support/shared.hpp"

namespace vellum::test {
namespace {

constexpr std::size_t kProcesses = 16;
constexpr std::uint64_t kSnapshotEvery = 7;

struct Board : GenerationBoard {
  std::atomic<pid_t> writer{0};                 // the holder of the branch
  std::array<std::atomic<pid_t>, 64> killed{};  // the latest
  std::atomic<std::uint64_t> busy{0}, turns{0}, reads{0};
  std::atomic<bool> stop{false};

  bool was_killed(pid_t pid) const {
    return std::find(killed.begin(), killed.end(), pid) != killed.end();
  }
};

using Children = std::vector<std::unique_ptr<Child>>;

class Contest : public GenerationsTest {
 protected:
  // A process that runs until it is stopped or killed.
  void take_part(Board& board, std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    std::uint64_t newest = 0;  // that this process has seen
    while (!board.stop) {
      if (random() % 3 != 0) try_to_write(board, random);
      read_head(board, newest);
      if (random() % 4 == 0) read_a_snapshot(board, random);
    }
  }

  // Writes once, when no other process is the writer.
  void try_to_write(Board& board, std::mt19937_64& random) const {
    Region region;
    try {
      region = Store::open(path()).open_region("main", small());
    } catch (const Error& error) {
      require(error.code() == Errc::busy, error.what());
      board.busy += 1;
      return;
    }
    const pid_t before = board.writer.exchange(getpid());
    require(before == 0 || board.was_killed(before),
            "the branch is free, or its writer was killed");
    board.turns += 1;
    write_generations(board, region, 1 + random() % 12);
    require(board.writer.exchange(0) == getpid(), "nobody else has had the branch meanwhile");
    region.close();
  }

  void write_generations(Board& board, Region& region, std::uint64_t count) const {
    std::uint64_t g = Generations::read(region.data());
    require(g != Generations::kTorn, "the writer finds a whole generation");
    require(g >= board.committed && g <= board.started, "the writer finds the last commit");
    for (; count > 0 && !board.stop; --count) {
      board.started = ++g;
      Generations::write(region.data(), g);
      commit(region, board, g, g % kSnapshotEvery == 0);
    }
  }

  void read_head(Board& board, std::uint64_t& newest) const {
    const std::uint64_t least = board.committed;
    const Region head = Store::open(path()).open_version("main", small());
    const std::uint64_t seen = Generations::read(head.data());
    require(seen != Generations::kTorn, "the head is whole");
    require(seen >= std::max(least, newest), "the head is not older than what was there before");
    require(seen <= board.started, "the head had been begun");
    newest = seen;
    board.reads += 1;
  }

  void read_a_snapshot(const Board& board, std::mt19937_64& random) const {
    const std::uint64_t last = board.snapshot / kSnapshotEvery;
    if (last == 0) return;
    const std::uint64_t g = (1 + random() % last) * kSnapshotEvery;
    // A kill may have interrupted this one; then it is whole, or does not exist.
    Store store = Store::open(path());
    if (!store.contains(snapshot_name(g))) return;
    const Region version = store.open_version(snapshot_name(g), small());
    require(Generations::read(version.data()) == g, "the snapshot is what it was");
  }

  std::unique_ptr<Child> start(Board& board) {
    const std::uint64_t seed = random_();
    return std::make_unique<Child>(start_child([this, &board, seed] { take_part(board, seed); }));
  }

  // Mostly the writer; sometimes any process.
  std::unique_ptr<Child>& choose(const Board& board, Children& children) {
    const pid_t writer = board.writer;
    const auto at = std::find_if(children.begin(), children.end(),
                                 [&](const auto& child) { return child->pid() == writer; });
    if (at != children.end() && random_() % 8 != 0) return *at;
    return children[random_() % children.size()];
  }

  // This is recorded first, so that the next writer knows that the branch is free.
  void kill(Board& board, Child& child) {
    board.killed[kills_++ % board.killed.size()] = child.pid();
    writers_killed_ += child.pid() == board.writer;
    child.kill(SIGKILL);
    EXPECT_CHILD_SIGNAL(child.wait(), SIGKILL);
  }

  // Waits until a process has the branch. The wait is bounded, as the branch may stay free.
  static void wait_for_a_writer(const Board& board) {
    for (int i = 0; i < 4000; ++i) {
      const pid_t writer = board.writer;
      if (writer != 0 && !board.was_killed(writer)) return;
      usleep(250);
    }
  }

  void kill_and_replace(Board& board, Children& children, std::uint64_t kills) {
    for (std::uint64_t i = 0; i < kills && !HasFailure(); ++i) {
      if (random_() % 8 != 0) wait_for_a_writer(board);
      usleep(static_cast<useconds_t>(random_() % 8'000));
      for (const auto& child : children) {
        if (!child->running())
          ADD_FAILURE() << "one ended: " << testing::PrintToString(child->wait());
      }
      if (HasFailure()) return;
      std::unique_ptr<Child>& victim = choose(board, children);
      kill(board, *victim);
      victim = start(board);
    }
  }

  void check_the_end(const Board& board) const {
    Store store = Store::open(path());
    Region region = store.open_region("main", small());  // killed processes hold no lock
    const std::uint64_t g = Generations::read(region.data());
    EXPECT_NE(g, Generations::kTorn);
    EXPECT_GE(g, board.committed);
    EXPECT_LE(g, board.started);
    Generations::write(region.data(), g + 1);
    region.commit();
    EXPECT_EQ(Generations::read(region.data()), g + 1);
    for (std::uint64_t s = kSnapshotEvery; s <= board.snapshot; s += kSnapshotEvery) {
      if (!store.contains(snapshot_name(s))) continue;  // cut by a kill: its number was passed over
      EXPECT_EQ(Generations::read(content_of(store, snapshot_name(s)).data()), s);
    }
    expect_no_damage(store);
  }

  std::mt19937_64 random_{11};
  std::uint64_t kills_ = 0, writers_killed_ = 0;
};

TEST_P(Contest, SixteenProcessesContendDespiteKills) {
  const std::uint64_t kills = kills_wanted(40, 15);
  create_empty(tiny());
  const Shared<Board> board;
  Children children;
  for (std::size_t i = 0; i < kProcesses; ++i) children.push_back(start(*board));
  kill_and_replace(*board, children, kills);
  board->stop = true;
  for (const auto& child : children) EXPECT_CHILD_EXIT(child->wait(), 0);
  check_the_end(*board);
  EXPECT_GT(writers_killed_, kills / 8);
  EXPECT_GT(board->busy, 0u);
  EXPECT_GT(board->turns, kills / 8);
  EXPECT_GT(board->reads, 0u);
  std::printf("%s: %ju kills, %ju of them of the writer; %ju turns, %ju times busy, %ju reads\n",
              engine_name(GetParam()), std::uintmax_t{kills}, std::uintmax_t{writers_killed_},
              std::uintmax_t{board->turns}, std::uintmax_t{board->busy},
              std::uintmax_t{board->reads});
}

VELLUM_BOTH_ENGINES(Contest);

}  // namespace
}  // namespace vellum::test
