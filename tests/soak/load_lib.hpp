// Mixed load on one store, checked against a model of it.
//
// A round: threads load and store pages of a region that is larger than its limit; concurrently run
// commits (in half of the rounds), a reader of old versions, removals and gc. When the threads have
// ended, the round ends with a commit, a snapshot, a rollback or a reopening.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>
#include <vellum/store.hpp>

#include "soak/content_lib.hpp"

namespace vellum::test {

struct LoadOptions {
  Engine engine = Engine::automatic;
  std::string directory;  // of the store, which must not exist
  std::uint64_t region_bytes = 8u << 20;
  std::uint64_t limit_bytes = 2u << 20;
  std::uint64_t pack_bytes = 2u << 20;
  std::uint64_t steps_a_round = 300;  // of each writer
  std::size_t snapshots_kept = 8;
};

struct LoadCounts {
  std::atomic<std::uint64_t> loads{0}, stores{0}, commits{0}, snapshots{0}, rollbacks{0},
      reopenings{0}, versions_read{0}, removals{0}, collections{0}, freed_bytes{0}, saved_bytes{0},
      collections_refused{0};
  std::string to_string() const;
};

class Load {
 public:
  static constexpr std::size_t kWriters = 3;
  // After so many everything has been closed once
  static constexpr std::uint64_t kRoundsACycle = 8;

  explicit Load(const LoadOptions& options);
  // `while_closed` is called when a round has closed the store, before it opens it again. Throws
  // the round's error.
  void round(std::uint64_t number, const std::function<void()>& while_closed);
  // Closes, verifies the store, and compares every version as a whole.
  void finish();
  const LoadCounts& counts() const { return counts_; }
  // Of the heap. REQUIRES: between rounds, or while closed.
  std::uint64_t model_bytes() const;

 private:
  struct Snapshot {
    std::string name;
    std::shared_ptr<const Content> content;
  };
  // The progress of a writer thread's counter.
  struct Progress {
    std::atomic<std::uint64_t> begun{0}, done{0};
  };

  void open_region();
  void fill();
  RegionOptions region_options() const;
  std::uint64_t* page(std::uint64_t number) const;

  // Threads of a round. guarded() records an exception and ends the round.
  void run_beside(bool with_commits, std::uint64_t number);
  void guarded(const std::function<void()>& body);
  void write(std::size_t writer, std::uint64_t number);
  PageSeeds next_seeds(std::mt19937_64& random, PageSeeds now) const;
  void count_up(std::size_t writer);
  void commit_beside();
  void read_versions();
  void read_version(const Snapshot& snapshot);
  void collect();
  void collect_garbage(bool recompress);

  // Ends of a round.
  void commit();
  void snapshot();
  void rollback();
  void reopen_region();
  void reopen_store(const std::function<void()>& while_closed);
  void use_a_branch(std::uint64_t number);
  void take_over(const Content& content);

  std::optional<Snapshot> any_snapshot(std::mt19937_64& random) const;

  LoadOptions options_;
  std::optional<Store> store_;
  Region region_;
  std::future<CommitReport> pending_;
  Content live_, committed_;
  std::array<Progress, kWriters> progress_;
  mutable std::mutex mutex_;  // of snapshots_ and problem_
  std::vector<Snapshot> snapshots_;
  std::string problem_;
  std::atomic<bool> failed_{false};
  std::atomic<std::size_t> writing_{0};
  std::uint64_t names_ = 0;
  std::array<std::mt19937_64, kWriters> writer_random_;
  std::mt19937_64 reader_random_{101}, random_{102};
  LoadCounts counts_;
};

}  // namespace vellum::test
