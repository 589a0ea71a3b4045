// group/job.hpp: a rank's side of a job that has a group open for writing: the protocol of global
// versions.
//
// A version is created in these steps (docs/format.md has the crash table):
//   1. Each rank makes its partitions durable, each by a snapshot, the pin. The pins of the
//      previous version stay.
//   2. Rank 0 gathers the results. An error on one rank is an error on all, and the pins of this
//      attempt are removed.
//   3. Rank 0 publishes the record: the commit point.
//   4. Rank 0 broadcasts the outcome. Only then does each rank remove the older pins, in a thread.
// A job begins with a record of its own for the version that it opens. Its number fences an earlier
// job that has lost its lock without noticing.
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
  // The number of partitions of a new group; 0: one for each rank. For an existing group: 0, or its
  // number.
  std::uint32_t partitions = 0;
  // The partitions of this rank; nullopt: its even share. Each partition must belong to one rank.
  std::optional<std::vector<std::uint32_t>> mine;
  std::string version;  // to open: a name or a number; empty: the newest
  std::string branch = "main";
  std::optional<format::Encoding> encoding;              // of a recreated branch
  std::function<std::string(std::uint32_t)> store_path;  // for the records
  std::shared_ptr<RemoteVersions> remote;  // null: versions are durable only in the stores
  bool release_in_background = true;  // of unneeded pins; false: a fixed order of calls, for tests
};

struct JobReport {
  std::uint64_t number = 0;                       // of the version
  std::uint64_t bytes_written = 0;                // by all ranks
  std::vector<CommitReport> commits;              // of this rank's partitions
  std::chrono::nanoseconds own_time{0};           // of this rank's commits
  std::chrono::nanoseconds slowest_time{0};       // of the ranks' own commits
  std::chrono::nanoseconds coordination_time{0};  // of the call, beyond the slowest rank's commits
};

// The result of a snapshot_async().
struct PendingVersion {
  bool is_done = false;
  Outcome outcome;
  JobReport report;
};

// The result of a push_async().
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
  // Errc::invalid_argument: another rank's partition.
  PartitionMemory& memory(std::uint32_t partition);

  // A version with an empty name exists until the next version.
  JobReport snapshot(const std::string& name, const std::string& message);
  // Captures the memory now. finish(), or the next collective call, creates the version.
  std::shared_ptr<PendingVersion> snapshot_async(const std::string& name,
                                                 const std::string& message);
  JobReport finish(const std::shared_ptr<PendingVersion>& pending);
  // Rolls all partitions back to the last global version.
  void rollback();
  // The record of a version, on all ranks. Empty: the newest.
  format::GroupRecord read_record(const std::string& version);
  // Not collective; the same on all ranks.
  bool has_name(const std::string& name) const { return names_.contains(name); }
  std::string free_name(const std::string& wanted) const;  // with a number appended if it is in use
  // Removes a named version. Errc::not_found; invalid_argument: it is the newest.
  void remove_version(const std::string& name);
  // Each rank starts a thread that makes its part of a version durable at the remote; empty: the
  // newest. finish_push(), or the next push_async(), waits for all ranks and publishes the record
  // there (job_push.cpp).
  std::shared_ptr<PendingPush> push_async(const std::string& version);
  void finish_push(const std::shared_ptr<PendingPush>& pending);
  // Closes the partitions. Not collective. Unfinished pushes and snapshots create no version.
  void close();

 private:
  struct Partition {
    std::uint32_t number = 0;
    std::shared_ptr<store::StoreDirectory> store;
    std::unique_ptr<PartitionMemory> memory;
  };
  // The facts about a global version that all ranks have.
  struct GlobalVersion {
    std::uint64_t number = 0;
    GroupPin pin;
    bool is_named = false;
  };
  // This rank's part in a version that is being created.
  struct Commits {
    GroupPin pin;
    bool pins_are_new = false;  // created for this version only: removed if it fails
    std::int64_t created_ns = 0;
    std::string name, message;
    std::vector<std::future<CommitReport>> running;
    std::vector<CommitReport> done;
    std::vector<std::uint64_t> bytes_written;  // of each partition
    Outcome outcome;
    std::chrono::steady_clock::time_point began;
    std::chrono::nanoseconds time{0};
  };
  // A version that is being pushed to the remote.
  struct ActivePush {
    format::GroupRecord record;
    Outcome outcome;  // of this rank; like the next member, valid once the thread is idle
    std::uint64_t bytes_uploaded = 0;
    std::shared_ptr<PendingPush> end;
  };
  // The state of the directory when the job begins, read by rank 0.
  struct FoundGroup {
    format::GroupFile group;
    std::uint64_t epoch = 1, last_number = 0;
    bool all_readable = true;  // false: an unreadable record may need its pins
    std::vector<std::pair<GroupPin, std::string>> named;
    std::optional<format::GroupRecord> at;  // nullopt: the group has no version yet
  };
  static Bytes encode(const FoundGroup& found);
  static FoundGroup decode_found(std::span<const std::byte> bytes);

  // job_open.cpp
  FoundGroup find();
  void take_over(const FoundGroup& found);
  Commits open_partitions(const FoundGroup& found, PartitionOpener& opener);
  void open_partition(std::uint32_t number, const FoundGroup& found, PartitionOpener& opener);
  void tidy(const FoundGroup& found);

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
  void push_partitions(ActivePush& push) noexcept;
  void settle_push();
  void complete(const ActivePush& push);
  bool is_pushing(const GroupPin& pin) const {
    return push_.has_value() && push_->record.pin == pin;
  }

  base::Fs& fs_;
  Ranks& ranks_;
  const JobOptions options_;
  std::optional<RecordDirectory> directory_;  // only on rank 0
  format::GroupFile group_;
  std::uint64_t epoch_ = 0, attempt_ = 0;
  GlobalVersion last_;           // the last global version
  std::set<GroupPin> kept_;      // pins of versions with names
  std::set<std::string> names_;  // of versions
  std::vector<std::uint32_t> numbers_;
  std::vector<Partition> partitions_;
  std::optional<Commits> pending_;
  std::shared_ptr<PendingVersion> pending_end_;
  bool ahead_ = false;  // a branch may have commits that no global version has
  Outcome ended_;       // an error: this job creates no more versions
  std::optional<ActivePush> push_;
  base::Background pusher_;
  base::Background later_;
};

// A version of the directory by name or number; empty: the newest. Errc::not_found.
format::GroupRecord find_record(const RecordDirectory& directory, const std::string& version);

}  // namespace vellum::group
