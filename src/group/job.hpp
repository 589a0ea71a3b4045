// group/job.hpp: a rank's side of a job that has a group open to write: the protocol of global
// versions.
//
// A version is made in these steps (docs/format.md has the crash table):
//   1. Each rank makes its partitions durable, each by a snapshot, the pin. The pins of the version
//      before stay.
//   2. The ranks' results come together at rank 0. An error on one is an error on all, and the pins
//      of this attempt go.
//   3. Rank 0 publishes the record: the commit point.
//   4. All ranks learn the outcome. Only then do the older pins go, in a thread of each rank.
// A job begins with a record of its own, with the versions that it found. Its number fences a job
// before it that has lost its lock and not noticed.
//
// Threads: one at a time. All calls but the accessors are collective (group/ranks.hpp).
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/threads/background.hpp"
#include "group/outcome.hpp"
#include "group/partition_memory.hpp"
#include "group/pins.hpp"
#include "group/ranks.hpp"
#include "group/record_directory.hpp"
#include "group/remote_versions.hpp"

namespace vellum::group {

struct JobOptions {
  std::string records;  // the directory; only rank 0 uses it
  // How many partitions a new group has; 0: one a rank. An existing group's: 0, or its number.
  std::uint32_t partitions = 0;
  // Those of this rank; nothing: its even share. Each partition has to be one rank's.
  std::optional<std::vector<std::uint32_t>> mine;
  std::string version;  // to open at: a name, or a number; empty: the newest
  std::string branch = "main";
  std::optional<format::Encoding> encoding;              // of a branch that is made anew
  std::function<std::string(std::uint32_t)> store_path;  // for the records
  std::shared_ptr<RemoteVersions> remote;  // null: versions are durable in the stores alone
  bool release_in_background = true;  // pins that no version needs; a test wants one order of calls
};

struct JobReport {
  std::uint64_t number = 0;                       // of the version
  std::uint64_t bytes_written = 0;                // by all ranks
  std::vector<CommitReport> commits;              // of this rank's partitions
  std::chrono::nanoseconds own_time{0};           // of this rank's commits
  std::chrono::nanoseconds slowest_time{0};       // of the ranks' own commits
  std::chrono::nanoseconds coordination_time{0};  // of the call, beyond the slowest rank's commits
};

// The end of a snapshot_async().
struct PendingVersion {
  bool is_done = false;
  Outcome outcome;
  JobReport report;
};

// The end of a push_async().
struct PendingPush {
  bool is_done = false;
  Outcome outcome;
  std::uint64_t number = 0;          // of the version
  std::uint64_t bytes_uploaded = 0;  // by all ranks
};

class Job {
 public:
  Job(base::Fs& fs, Ranks& ranks, JobOptions options, PartitionOpener& opener);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const format::GroupFile& group() const noexcept { return group_; }
  std::uint64_t epoch() const noexcept { return epoch_; }
  std::uint64_t number() const noexcept { return last_.number; }  // of the last global version
  const std::vector<std::uint32_t>& mine() const noexcept { return numbers_; }
  // Errc::invalid_argument: it is not one of this rank's.
  PartitionMemory& memory(std::uint32_t partition);

  // With an empty name, the version stays until the next one.
  JobReport snapshot(const std::string& name, const std::string& message);
  // Takes the memory now. The version is made by finish(), or by the next call that is collective.
  std::shared_ptr<PendingVersion> snapshot_async(const std::string& name,
                                                 const std::string& message);
  JobReport finish(const std::shared_ptr<PendingVersion>& pending);
  // All partitions go back to the last global version.
  void rollback();
  // The record of a version, on all ranks. Empty: the newest.
  format::GroupRecord read_record(const std::string& version);
  // Not collective; the same on all ranks.
  bool has_name(const std::string& name) const { return names_.contains(name); }
  std::string free_name(const std::string& wanted) const;  // with a number behind it if it is taken
  // Removes a version that has a name. Errc::not_found; invalid_argument: it is the newest.
  void remove_version(const std::string& name);
  // Each rank begins to make its part of a version durable in the remote, in a thread; empty: the
  // newest. finish_push(), or the next push_async(), publishes the record there, when all ranks have
  // ended (job_push.cpp).
  std::shared_ptr<PendingPush> push_async(const std::string& version);
  void finish_push(const std::shared_ptr<PendingPush>& pending);
  // Closes the partitions. Not collective. An unfinished push makes no version at the remote, and an
  // unfinished snapshot_async() makes no version.
  void close();

 private:
  struct Partition {
    std::uint32_t number = 0;
    std::shared_ptr<store::StoreDirectory> store;
    std::unique_ptr<PartitionMemory> memory;
  };
  // What all ranks know of a version.
  struct Known {
    std::uint64_t number = 0;
    GroupPin pin;
    bool is_named = false;
  };
  // This rank's part in a version that is being made.
  struct Commits {
    GroupPin pin;
    bool pins_are_new = false;  // made for this version alone: they go if it is not made
    std::int64_t created_ns = 0;
    std::string name, message;
    std::vector<std::future<CommitReport>> running;
    std::vector<CommitReport> done;
    std::vector<std::uint64_t> bytes_written;  // of each partition
    Outcome outcome;
    std::chrono::steady_clock::time_point began;
    std::chrono::nanoseconds time{0};
  };
  // A version on its way to the remote.
  struct Push {
    format::GroupRecord record;
    Outcome outcome;  // of this rank, and below: once its thread is idle
    std::uint64_t bytes_uploaded = 0;
    std::shared_ptr<PendingPush> end;
  };
  // What rank 0 finds in the directory when the job begins.
  struct Found {
    format::GroupFile group;
    std::uint64_t epoch = 1, last_number = 0;
    bool all_readable = true;  // false: pins of a record that does not read may be needed
    std::vector<std::pair<GroupPin, std::string>> named;
    std::optional<format::GroupRecord> at;  // nothing: the group has no version yet
  };
  static Bytes encode(const Found& found);
  static Found decode_found(std::span<const std::byte> bytes);

  // job_open.cpp
  Found find();
  void take_over(const Found& found);
  Commits open_partitions(const Found& found, PartitionOpener& opener);
  void open_partition(std::uint32_t number, const Found& found, PartitionOpener& opener);
  void tidy(const Found& found);

  Commits new_commits(const std::string& name, const std::string& message);
  void check_arguments(const std::string& name, const std::string& message) const;
  void settle_pending();
  void wait_for(Commits& commits);
  Message describe(const Commits& commits) const;
  JobReport make(Commits& commits);
  JobReport publish(Commits& commits);
  format::GroupRecord record_of(const Commits& commits, const std::vector<Bytes>& gathered,
                                JobReport& report) const;
  void succeed(const Commits& commits, std::uint64_t number);
  [[noreturn]] void give_up(const Commits& commits, const Outcome& outcome, bool is_end);
  void run_later(std::function<void()> task);
  void remove_pins(const GroupPin& pin);
  void require_usable() const;

  // job_push.cpp
  void push_partitions(Push& push) noexcept;
  void settle_push();
  void complete(const Push& push);
  bool is_pushing(const GroupPin& pin) const {
    return push_.has_value() && push_->record.pin == pin;
  }

  base::Fs& fs_;
  Ranks& ranks_;
  const JobOptions options_;
  std::optional<RecordDirectory> directory_;  // rank 0's
  format::GroupFile group_;
  std::uint64_t epoch_ = 0, attempt_ = 0;
  Known last_;                   // the last global version
  std::set<GroupPin> kept_;      // pins of versions with names
  std::set<std::string> names_;  // of versions
  std::vector<std::uint32_t> numbers_;
  std::vector<Partition> partitions_;
  std::optional<Commits> pending_;
  std::shared_ptr<PendingVersion> pending_end_;
  bool ahead_ = false;  // a branch may have commits that no global version has
  Outcome ended_;       // why this job makes no more versions
  std::optional<Push> push_;
  base::Background pusher_;
  base::Background later_;
};

// A version of the directory by name or number; empty: the newest. Errc::not_found.
format::GroupRecord find_record(const RecordDirectory& directory, const std::string& version);

}  // namespace vellum::group
