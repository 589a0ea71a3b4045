// A store with one region of generations (generation.hpp), with processes that write, read or are
// killed.
#pragma once

#include <atomic>
#include <cstdlib>
#include <string>

#include "support/generation.hpp"
#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {

// The progress of the processes, in generations, in memory that they share.
struct GenerationBoard {
  std::atomic<std::uint64_t> started{0}, committed{0}, snapshot{0};
};

class GenerationsTest : public StoreTest {
 protected:
  RegionOptions small() const {
    RegionOptions options = StoreTest::options();
    options.capacity_bytes = Generations::kBytes;
    options.encode_threads = 0;
    return options;
  }
  // Checkpoints and new packs all the time.
  static StoreOptions tiny() {
    StoreOptions options;
    options.journal_half_bytes = 64u << 10;
    options.pack_bytes = 1u << 20;
    return options;
  }
  void create_empty(const StoreOptions& store_options) const {
    create(store_options).create_region("main", Generations::kBytes, small()).close();
  }
  static std::string snapshot_name(std::uint64_t generation) {
    return "g" + std::to_string(generation);
  }
  // Commits the region's generation, as a snapshot or as a plain commit.
  static void commit(Region& region, GenerationBoard& board, std::uint64_t generation,
                     bool as_snapshot) {
    if (as_snapshot) {
      region.snapshot(snapshot_name(generation));
      board.snapshot = generation;
    } else {
      region.commit();
    }
    board.committed = generation;
  }
  static void expect_no_damage(const Store& store) {
    for (const auto& damage : store.verify({.read_data = true}).damages) {
      ADD_FAILURE() << damage.object << ": " << damage.reason;
    }
  }
};

// The number of kills: VELLUM_KILLS, or that of a short run.
inline std::uint64_t kills_wanted(int plain, int sanitized) {
  const char* const wanted = std::getenv("VELLUM_KILLS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10)
                           : static_cast<std::uint64_t>(rounds(plain, sanitized));
}

}  // namespace vellum::test
