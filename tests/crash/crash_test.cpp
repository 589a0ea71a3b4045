// Power cuts at every step of generated sequences (simulator_lib.hpp). tools/crash.sh runs many
// more.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <vector>
#include <vellum/key.hpp>

#include "base/temp_directory.hpp"
#include "crash/repeats_lib.hpp"
#include "crash/script_lib.hpp"
#include "crash/simulator_lib.hpp"
#include "support/count_records.hpp"
#include "support/disk/nonce_watch.hpp"
#include "support/sanitizers.hpp"
#include "vellum/error.hpp"

namespace vellum::crash {
namespace {

using sim::Op;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void add(Totals& sum, const Totals& t) {
  sum.sequences += t.sequences;
  sum.recoveries += t.recoveries;
  sum.crash_points += t.crash_points;
  sum.images_built += t.images_built;
  sum.images_distinct += t.images_distinct;
  for (const auto& v : t.violations) {
    ++sum.violating;
    ADD_FAILURE() << v;
  }
}

void print(const char* name, const Totals& t) {
  fmt::print(
      "{}: {} sequences, {} recoveries, {} crash points, {} images built, {} distinct, {} "
      "violations\n",
      name, t.sequences, t.recoveries, t.crash_points, t.images_built, t.images_distinct,
      t.violating);
  std::fflush(stdout);
}

SimulatorOptions short_run() {
  SimulatorOptions options;
  options.effort = {6, 24, 4, 10};
  options.second_effort = {4, 5, 3, 3};
  options.recover_one_in = 100;
  return options;
}

SimulatorOptions long_run() { return {}; }

// Environment variables: VELLUM_CRASH_LONG=1 selects the effort of the long run,
// VELLUM_CRASH_SEQUENCES the number of sequences, VELLUM_CRASH_FIRST the first one;
// VELLUM_CRASH_VERBOSE=1 prints a line for each sequence.
bool long_effort() { return from_environment("VELLUM_CRASH_LONG", 0) != 0; }

// Each of these images has several MiB.
SimulatorOptions short_repeats() {
  SimulatorOptions options;
  options.effort = {3, 6, 2, 3};
  options.second_effort = {2, 2, 2, 2};
  options.recover_one_in = 60;
  return options;
}

// Every crash of a session on a store that was created with options_for(seed).
void cut_everywhere(SimSession& session, std::uint64_t seed, const char* label,
                    const SimulatorOptions& options = short_run()) {
  Simulator simulator(options, label);
  simulator.run(session, seed, options_for(seed));
  Totals sum;
  add(sum, simulator.totals());
  print(label, sum);
}

// The number of packs that recompression has replaced.
std::uint64_t recompressions_in(SimSession& session) {
  const auto& log = session.fs.log();
  return static_cast<std::uint64_t>(std::count_if(log.begin(), log.end(), [](const Op& op) {
    return op.kind == Op::OpKind::rename && op.to_name.ends_with(".pack");
  }));
}

// Every crash of a generated sequence; returns the sequence.
std::unique_ptr<SimSession> cut_sequence(std::uint64_t seed, std::size_t steps,
                                         const SimulatorOptions& options, Totals& sum) {
  const auto start = std::chrono::steady_clock::now();
  Simulator simulator(options, fmt::format("seed {} ({})", seed, flavour_name(flavour_of(seed))));
  auto session = simulate_script(seed, steps);
  simulator.run(*session, seed, options_for(seed));
  add(sum, simulator.totals());
  if (from_environment("VELLUM_CRASH_VERBOSE", 0) != 0) {
    const std::chrono::duration<double> t = std::chrono::steady_clock::now() - start;
    print(
        fmt::format("seed {} {} {:.2f} s", seed, flavour_name(flavour_of(seed)), t.count()).c_str(),
        simulator.totals());
  }
  return session;
}

// A sequence in which gc recompresses packs: one in twenty does.
constexpr std::uint64_t kSeedThatRecompresses = 30;

TEST(Crash, GeneratedSequences) {
  const std::uint64_t first = from_environment("VELLUM_CRASH_FIRST", 0);
  const std::uint64_t count =
      from_environment("VELLUM_CRASH_SEQUENCES", static_cast<std::uint64_t>(test::rounds(8, 5)));
  std::vector<std::uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), first);
  const bool by_default = std::getenv("VELLUM_CRASH_FIRST") == nullptr;
  if (by_default && count <= kSeedThatRecompresses) {
    seeds.push_back(kSeedThatRecompresses);
  }
  Totals sum;
  std::uint64_t recompressions = 0;
  for (std::size_t n = 0; n < seeds.size() && !testing::Test::HasFailure(); ++n) {
    const auto session = cut_sequence(seeds[n], long_effort() ? 40 : 20,
                                      long_effort() ? long_run() : short_run(), sum);
    recompressions += recompressions_in(*session);
  }
  print("generated", sum);
  std::printf("%llu recompressions\n", static_cast<unsigned long long>(recompressions));
  if (by_default) {
    EXPECT_GT(recompressions, 0u);
  }
}

// The process's source of keys is a key file.
class KeyFile {
 public:
  KeyFile() {
    std::ofstream(directory_ / "key") << std::string(64, 'k');
    KeySource source;
    source.key_file = directory_ / "key";
    set_key_source(source);
  }
  ~KeyFile() { set_key_source(key_source_of_environment()); }
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;

 private:
  test::TempDirectory directory_;
};

// The same sequences on encrypted stores: tiny packs, and garbage. No nonce comes twice in all that
// they and the recoveries write, which each overwrite what a crash left.
TEST(Crash, EncryptedStores) {
  const KeyFile key;
  Totals sum;
  sim::NonceWatch nonces;
  SimulatorOptions options = short_run();
  options.recover_one_in = 50;
  options.on_log = [&](const sim::Log& log) { nonces.look(log); };
  for (const std::uint64_t n : {0u, 4u}) {
    cut_sequence(kEncryptedSeeds + n, 12, options, sum);
    if (testing::Test::HasFailure()) break;
  }
  print("encrypted", sum);
  fmt::print("nonces: {} records, {} frames, {} files\n", nonces.records, nonces.frames,
             nonces.files);
  EXPECT_EQ(nonces.repeat, "");
  EXPECT_GT(nonces.records, 50u);
  EXPECT_GT(nonces.frames, 50u);
  EXPECT_GT(nonces.files, 10u);
}

// These commits refer to pages of each other, of older versions and of removed versions.
TEST(Crash, CommitsThatRepeatOthers) {
  const std::uint64_t first = from_environment("VELLUM_CRASH_FIRST", 0);
  const std::uint64_t count =
      from_environment("VELLUM_CRASH_SEQUENCES", static_cast<std::uint64_t>(test::rounds(2, 1)));
  Totals sum;
  std::uint64_t found = 0, based = 0;
  for (std::uint64_t n = first; n < first + count && !testing::Test::HasFailure(); ++n) {
    const auto session = cut_sequence(seed_of_repeats(n), long_effort() ? 24 : 8,
                                      long_effort() ? long_run() : short_repeats(), sum);
    found += session->session.pages_found();
    based += test::count_records(session->session.core(), format::RecordType::based_pages);
  }
  print("repeats", sum);
  fmt::print("{} pages found, {} records of based pages left\n", found, based);
  // The three commits at the start of each sequence find fewer.
  EXPECT_GT(found, count * 3 * kRepeatedPages);
  EXPECT_GT(based, 0u);
}

// The session starts with an empty disk: a directory without a superblock is not a store, and a
// store can be created in it.
TEST(Crash, CreationOfStoreBranchAndFirstSnapshot) {
  SimSession simulated{Disk(), StoreState()};
  Session& session = simulated.session;
  session.create_store(options_for(1));
  session.create_branch("main", 3);
  session.pages("main").store64(1, 16, 42);
  session.commit("main", false);
  session.snapshot("main", "first");
  session.create_branch_at("second", "first");
  session.remove_branch("main");
  session.remove_snapshot("first");
  session.close_all();
  cut_everywhere(simulated, 1, "creation");
}

// Runs a script in which `fail` makes one call fail, and cuts the power everywhere: before the
// failure, during `go_on`, and after it. False: the script has no such call.
bool crash_around_failure(std::uint64_t seed, std::uint64_t n, std::function<bool()> SimFs::* fail,
                          const std::function<void(Session&)>& go_on, Totals& sum) {
  SimSession simulated = session_on_new_store(seed);
  std::uint64_t calls = 0;
  simulated.fs.*fail = [&] { return ++calls == n; };
  try {
    run_script(simulated.session, seed, 12);
  } catch (const Error&) {
    go_on(simulated.session);
    simulated.session.close_all();
  }
  if (calls < n) return false;
  Simulator simulator(short_run(), fmt::format("seed {}, call {} fails", seed, n));
  simulator.run(simulated, seed, options_for(seed));
  add(sum, simulator.totals());
  return true;
}

void crash_around_failures(const char* name, std::function<bool()> SimFs::* fail,
                           const std::function<void(Session&)>& go_on) {
  const std::uint64_t stride = long_effort() ? 1 : static_cast<std::uint64_t>(test::rounds(11, 40));
  const std::uint64_t first = from_environment("VELLUM_CRASH_FIRST", 0);
  Totals sum;
  for (std::uint64_t seed = first; seed < first + 7; ++seed) {
    std::uint64_t n = 1 + seed % stride;
    while (!testing::Test::HasFailure() && crash_around_failure(seed, n, fail, go_on, sum)) {
      n += stride;
    }
  }
  print(name, sum);
}

void commit_on_all(Session& session, bool only_open) {
  const StoreState seen = session.state();
  for (const auto& [name, version] : seen.branches) {
    if (version.region_bytes == 0 || (only_open && !session.has_writer(name))) continue;
    session.pages(name).store64(0, 64, version.digest);
    session.commit(name, version.sequence % 2 == 0);
  }
}

// The nth fdatasync fails and its data is lost permanently, but the page cache still shows the
// data. The program reopens the store and continues; then the power fails.
TEST(Crash, DataLostByAFailedSync) {
  crash_around_failures("failed syncs", &SimFs::sync_fails, [](Session& session) {
    session.reopen();
    session.collect_garbage(true);  // the visible last checkpoint may not be durable
    // Opening a branch for writing makes its visible state durable; a commit on another branch
    // does not.
    const StoreState seen = session.state();
    for (const auto& [name, version] : seen.branches) session.open_writer(name);
    commit_on_all(session, false);
  });
}

// The same, and the next program repeats the failed commit's content: its commit must not refer to
// pages that only the page cache has.
TEST(Crash, RepeatsOfContentLostByAFailedSync) {
  const std::uint64_t stride = long_effort() ? 1 : static_cast<std::uint64_t>(test::rounds(7, 20));
  Totals sum;
  for (const bool without : {false, true}) {
    for (std::uint64_t n = long_effort() ? 1 : 5; !testing::Test::HasFailure(); n += stride) {
      const std::uint64_t seed = seed_of_repeats(0);
      SimSession simulated = session_on_new_store(seed);
      std::uint64_t calls = 0;
      simulated.fs.sync_fails = [&] { return ++calls == n; };
      try {
        run_script(simulated.session, seed, 1);
      } catch (const Error&) {
        repeat_after_failure(simulated.session, without);
      }
      if (calls < n) break;
      Simulator simulator(short_repeats(),
                          fmt::format("sync {} fails{}", n, without ? ", without" : ""));
      simulator.run(simulated, n, options_for(seed));
      add(sum, simulator.totals());
    }
  }
  print("repeats after failed syncs", sum);
}

// The nth write reports an error, but reaches the disk. The same writers continue.
TEST(Crash, AFailedWriteThatReachedTheDisk) {
  crash_around_failures("failed writes", &SimFs::write_fails, [](Session& session) {
    session.accept_failure();
    session.collect_garbage(true);
    commit_on_all(session, true);
  });
}

// A program removes a snapshot and is killed before the removal is durable; gc runs; then the power
// fails. The snapshot must not reappear without its data.
TEST(Crash, GcAfterARemovalThatWasNotSynced) {
  SimSession simulated = session_on_new_store(6);
  Session& session = simulated.session;
  std::mt19937_64 random(1);
  session.create_branch("main", 24);
  for (const char* name : {"first", "second"}) {
    for (std::size_t page = 0; page < 24; ++page) session.pages("main").fill(page, random);
    session.snapshot("main", name);
  }
  session.close_all();
  session.collect_garbage(true);
  session.remove_snapshot_unsynced("first");
  session.collect_garbage(true);
  cut_everywhere(simulated, 6, "unsynced removal");
}

// gc saves its census for the next gc, while snapshots are created and removed and branches
// commit: after each crash that file is the old one, the new one, torn or missing.
TEST(Crash, ACensusFromBeforeTheCrash) {
  SimSession simulated = session_on_new_store(6);
  Session& session = simulated.session;
  std::mt19937_64 random(1);
  session.create_branch("main", 24);
  const auto snapshot = [&](const std::string& branch, const std::string& name) {
    for (int i = 0; i < 6; ++i) session.pages(branch).fill(random() % 24, random);
    session.snapshot(branch, name);
  };
  for (const char* name : {"a", "b", "c", "d"}) snapshot("main", name);
  session.collect_garbage(true);
  session.remove_snapshot("b");
  session.collect_garbage(true);
  session.create_branch_at("side", "c");
  session.open_writer("side");
  snapshot("side", "e");
  session.remove_snapshot("c");
  session.collect_garbage(false);
  session.remove_branch("side");
  session.remove_snapshot("e");
  session.collect_garbage(true, 3);
  snapshot("main", "f");
  session.remove_snapshot("d");
  session.collect_garbage(true);
  const auto& log = simulated.fs.log();
  EXPECT_EQ(std::count_if(log.begin(), log.end(),
                          [](const Op& op) {
                            return op.kind == Op::OpKind::rename && op.to_name == "gc.census";
                          }),
            5);
  cut_everywhere(simulated, 6, "a live set from before");
}

// Writers collect garbage in the background, during their commits and concurrently.
TEST(Crash, BackgroundGarbageCollection) {
  const std::uint64_t first = from_environment("VELLUM_CRASH_FIRST", 0);
  Totals sum;
  std::uint64_t collections = 0;
  for (std::uint64_t n = first; n < first + static_cast<std::uint64_t>(test::rounds(3, 1)); ++n) {
    const std::uint64_t seed = 7 * n + 6;  // flavour `garbage`
    SimSession simulated = session_on_new_store(seed);
    simulated.session.keep_space();
    run_script(simulated.session, seed, long_effort() ? 40 : 16);
    const auto& log = simulated.fs.log();
    collections += static_cast<std::uint64_t>(std::count_if(
        log.begin(), log.end(), [](const Op& op) { return op.to_name == "gc.space"; }));
    Simulator simulator(long_effort() ? long_run() : short_run(),
                        fmt::format("space back, seed {}", seed));
    simulator.run(simulated, seed, options_for(seed));
    add(sum, simulator.totals());
  }
  print("space back", sum);
  EXPECT_GT(collections, 10u);
}

// The newest base frame of a journal is visible, but a failed sync has lost it; gc runs; then the
// power fails, and the previous base frame is valid again.
TEST(Crash, GcAfterALostCheckpoint) {
  Totals sum;
  bool more = true;
  for (std::uint64_t n = 1; more; ++n) {
    SimSession simulated = session_on_new_store(6);
    Session& session = simulated.session;
    std::mt19937_64 random(1);
    session.create_branch("main", 12);
    session.commit("main", true);
    std::uint64_t calls = 0;
    simulated.fs.sync_fails = [&] { return ++calls == n; };
    try {
      for (int i = 0; i < 4; ++i) {
        for (std::size_t page = 0; page < 12; ++page) session.pages("main").fill(page, random);
        session.commit("main", true);
      }
      more = false;
    } catch (const Error&) {
      session.reopen();
      session.collect_garbage(true);
    }
    Simulator simulator(short_run(), fmt::format("lost checkpoint, sync {}", n));
    simulator.run(simulated, n, options_for(6));  // each loses different data
    add(sum, simulator.totals());
  }
  print("lost checkpoints", sum);
}

// Streams are imported into branches: new ones, changed ones and growing ones. gc then removes the
// leftovers of an interrupted import.
TEST(Crash, AnImportIsCompleteOrAbsent) {
  SimSession simulated = session_on_new_store(2);  // packs of a few KiB
  Session& session = simulated.session;
  std::mt19937_64 random(3);
  Pages pages(9);
  const auto change = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) pages.fill(random() % pages.count(), random);
  };
  change(9);
  session.import_branch("a", pages.bytes());
  for (int i = 0; i < (long_effort() ? 6 : 1); ++i) {
    pages.store64(random() % pages.count(), 8 * (random() % 512), random());
    session.import_branch("a", pages.bytes());
    pages.grow(pages.count() + 3);
    change(5);
    pages.zero(random() % pages.count());
    session.import_branch("a", pages.bytes());
    session.import_branch("b" + std::to_string(i), pages.bytes());
    session.commit("a", false);
    session.collect_garbage(true);
  }
  session.close_all();
  cut_everywhere(simulated, 2, "imports");
}

// Packs move to an archive and back, and have copies in a cache, in between commits, removals, gc
// and recompression.
TEST(Crash, PacksThatMove) {
  SimSession simulated = session_on_new_store(6);
  Session& session = simulated.session;
  std::mt19937_64 random(2);
  session.add_tiers();
  session.create_branch("main", 12);
  const auto fill = [&](const std::string& name) {
    for (std::size_t page = 0; page < 12; page += 1 + random() % 2) {
      session.pages("main").fill(page, random);
    }
    session.snapshot("main", name);
  };
  for (int i = 0; i < test::rounds(long_effort() ? 6 : 3, 2); ++i) {
    fill("a" + std::to_string(i));
    fill("b" + std::to_string(i));
    session.move_packs(i % 2 == 0);
    if (i % 3 == 1) session.remove_snapshot("a" + std::to_string(i));
    if (i % 3 == 1) session.collect_garbage(true, 3);
    session.move_packs(i % 4 < 2);
  }
  session.close_all();
  session.move_packs(false);
  cut_everywhere(simulated, 6, "moving packs");
}

// Frames that differ little, at every position in a sector: a crash tears one, the next program
// writes another at its position and is interrupted, too. The remains of both must not complete the
// first one.
TEST(Crash, ATornFrameDoesNotComeBack) {
  SimSession simulated = session_on_new_store(1);
  simulated.session.create_branch("main", 2);
  for (int i = 0; i < test::rounds(60, 15); ++i) simulated.session.commit("main", false);
  SimulatorOptions options = short_run();
  options.recover_one_in = 1;
  cut_everywhere(simulated, 1, "torn frames", options);
}

}  // namespace
}  // namespace vellum::crash
