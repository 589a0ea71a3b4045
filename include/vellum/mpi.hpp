// vellum/mpi.hpp: one version over many ranks of MPI.
//
//   vellum::GroupOptions options;
//   options.store = "/local/job/store-{}";       // a store for each rank
//   options.region_bytes = 1 << 30;
//   auto group = vellum::Group::open(MPI_COMM_WORLD, "/shared/job/records", options);
//   auto* mine = group.region().array<double>(1 << 20);   // plain memory
//   ...
//   group.snapshot("step-1000");                 // on all ranks, or on none
//
// A group is one logical data set split into partitions, each a branch of a store of its own: on a
// disk of its node, or in a shared directory. A *global version* is one version of every partition.
// It exists as soon as rank 0 has published its record, which names the version of each partition.
// After a crash of any rank, of all of them, or of the job, open() restores exactly the newest
// record, on all ranks; later commits of a partition are discarded.
//
// Calls are collective unless noted: all ranks of the communicator make the same calls in the same
// order, and return or throw together. An error on one rank is thrown on all of them as the same
// vellum::Error, which names the rank. When a call cannot be made at all (a rank was killed), MPI
// ends the job, as for any collective call.
//
// MPI must be initialised; MPI_THREAD_SINGLE suffices. The group duplicates the given communicator.
// Threads: one call at a time for each group; loads, stores and the calls of regions as in
// vellum/region.hpp, except that a region's own commit() and snapshot() belong to no global
// version: the next one includes them, and a crash before it drops them.
//
// docs/guides/mpi.md has more, with other numbers of ranks, and the arithmetic for 10,000. Readers
// need no MPI: vellum/group.hpp. For C: vellum/mpi.h.
#ifndef VELLUM_MPI_HPP
#define VELLUM_MPI_HPP

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <vellum/group.hpp>
#include <vellum/store.hpp>

namespace vellum {

// All but `mine` and `store` must be the same on all ranks; `store` may be another path on each
// node.
struct GroupOptions {
  // The path of each partition's store; "{}" stands for the partition's number. A new group creates
  // them; their parents must exist. An existing store is included with the content of its branch,
  // unless it belongs to another group.
  std::string store;
  std::string branch = "main";
  std::uint64_t region_bytes = 0;  // of each partition of a new group
  // The number of partitions of a new group; 0: one for each rank. It never changes, whatever the
  // number of ranks: see `mine`.
  std::uint32_t partitions = 0;
  // The partitions that this rank opens; no value: its even share, in order. Each partition must be
  // opened by exactly one rank; a rank may open none.
  std::optional<std::vector<std::uint32_t>> mine;
  // The version to continue from: a name, or a number. Empty: the newest. Later versions without a
  // name are discarded.
  std::string version;
  // Where versions become durable a second time, by push(): an object store, s3://bucket/prefix or
  // file:///path (docs/guides/remotes.md). Each partition has a remote there. Empty: nowhere.
  std::string remote;
  RegionOptions region;    // without an image
  StoreOptions new_store;  // of stores that are created
};

struct GroupReport {
  std::uint64_t number = 0;              // of the global version
  std::uint64_t bytes_written = 0;       // to the stores, by all ranks
  std::vector<CommitReport> commits;     // of this rank's partitions
  std::chrono::nanoseconds own_time{0};  // from the call until this rank's commits are durable
  // The own time of the slowest rank, and the rest of the call: the collective calls, the record,
  // and the time by which that rank has made its call later than this one.
  std::chrono::nanoseconds slowest_time{0};
  std::chrono::nanoseconds coordination_time{0};
};

class Group;

// A version that is being created: see Group::snapshot_async().
class PendingGroupVersion {
 public:
  // Collective. The result of snapshot(), or its error.
  GroupReport wait();

 private:
  friend class Group;
  struct Impl;
  explicit PendingGroupVersion(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

struct GroupPushReport {
  std::uint64_t number = 0;          // of the version
  std::uint64_t bytes_uploaded = 0;  // by all ranks
};

// A version that is being pushed: see Group::push_async().
class PendingGroupPush {
 public:
  // Collective. The result of push(), or its error.
  GroupPushReport wait();

 private:
  friend class Group;
  struct Impl;
  explicit PendingGroupPush(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

struct GroupRestoreReport {
  std::uint64_t number = 0;              // under which the version is the newest now
  std::uint64_t restored_number = 0;     // under which the remote has it
  std::string name;                      // of the version
  std::uint64_t partitions_fetched = 0;  // by all ranks; the others were present
  std::uint64_t bytes_read = 0;
};

class Group {
 public:
  // Creates the group if the directory of records has none; its parent must exist. Only rank 0 uses
  // the directory. Each branch is reset to the version in the record; then the job publishes its
  // own record, with the same versions.
  //  - Errc::busy: another job has the group open: it holds a lock in the directory, or the lock of
  //    a branch. Where locks do not work (two machines, a file system without them), the other job
  //    is fenced instead: its next version fails with Errc::busy.
  //  - not_found, corrupted: a record, a store or a version does not exist, or does not match the
  //    record. Nothing has been discarded on the ranks that report it. `version` can select an
  //    older version.
  [[nodiscard]] static Group open(MPI_Comm communicator, const std::string& records,
                                  const GroupOptions& options);
  Group() noexcept;  // no group: every call is invalid_argument
  ~Group();          // closes it, errors swallowed
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;

  // Not collective.
  std::uint32_t partitions() const;  // of the group
  const std::vector<std::uint32_t>& mine()
      const;                     // this rank's, in the order of GroupOptions::mine
  std::uint64_t number() const;  // of the last global version
  std::uint64_t epoch() const;   // of this job; increased by one for each job
  // The region of a partition of this rank; without a number, of its only one. The group owns it
  // and closes it. Errc::invalid_argument: it is not this rank's.
  Region& region(std::uint32_t partition);
  Region& region();

  // A global version without a name: it stays until the next one. (Its part in each store is a
  // snapshot, so it costs what snapshot() costs.)
  GroupReport commit(const std::string& message = std::string());
  // A global version that is kept until it is removed (remove_group_version()).
  // Errc::already_exists: nothing is committed.
  //
  // After an error there is no new version, the last one stays, memory is unchanged, and the next
  // call includes everything. After poisoned, and after busy because another job has taken over,
  // this job creates no more versions; open the group again, which finds this version whole or not
  // at all.
  GroupReport snapshot(const std::string& name, const std::string& message = std::string());
  // As snapshot(), but the call only finds and copies the dirty pages; a thread of each region
  // writes them. wait(), or the next collective call of the group, creates the version: a crash
  // before that gives the previous version. An empty name: as commit(). The call does not wait for
  // other ranks, but all ranks must make it in the same order.
  [[nodiscard]] PendingGroupVersion snapshot_async(const std::string& name,
                                                   const std::string& message = std::string());
  // Resets all memory to the last global version. REQUIRES: no other thread uses the regions
  // meanwhile. A region that has grown since a version that failed keeps its size, with zeros.
  void rollback();
  // A version to read, on every rank; any rank may then open any partition that it can reach,
  // without the others.
  [[nodiscard]] GroupVersion open_version(const std::string& version = std::string());

  // Makes a version durable in the remote, so that it survives the loss of stores: a name or a
  // number; empty: the last one. Each rank uploads the data that the remote of its partition lacks;
  // the version's record is uploaded when all have succeeded. The remote thus has a version whole
  // or not at all, and the newest one there is complete. Versions without a name are removed there
  // when a newer one is pushed; `vellum remote gc` frees their space.
  //
  // Errc::invalid_argument: the group has no remote; busy: another job has taken over, or another
  // push of a store is running; io and other errors: a rank has not reached its remote. The group
  // stays usable in any case, and the next push uploads only the missing data.
  GroupPushReport push(const std::string& version = std::string());
  // The same in a thread of each rank; compute and create versions in between. The version is whole
  // at the remote when wait(), or the next push, has returned. One at a time: another push waits.
  [[nodiscard]] PendingGroupPush push_async(const std::string& version = std::string());

  // Makes a version of the remote the newest of the group again: `options.version`, or the newest
  // that is complete there. Lost stores are created again, stores that lack the version get it, and
  // other versions stay until open(). Each rank restores the partitions that it would open. May be
  // cut off, and called again. `options`: remote, store, version, mine; partitions and sizes are
  // those of the remote. Errc::not_found: the remote has no such version; busy: a job has the group
  // open; invalid_argument: `records` is another group's; already_exists: something that is no
  // store has the path of one.
  static GroupRestoreReport restore(MPI_Comm communicator, const std::string& records,
                                    const GroupOptions& options);

  // Closes the regions. Uncommitted stores are lost. On all ranks, before MPI_Finalize(); the
  // destructor does the same.
  void close();

 private:
  friend class PendingGroupVersion;
  friend class PendingGroupPush;
  struct Impl;
  explicit Group(std::shared_ptr<Impl> impl) noexcept;
  Impl& opened() const;
  std::shared_ptr<Impl> impl_;
};

// For the exception handler around a job's work: prints the reason on standard error, with the
// rank, waits until the launcher has read it, and calls MPI_Abort(). (MPICH's launcher drops the
// content of its pipes when a rank aborts, and the user would not see the reason.) Not collective.
[[noreturn]] void abort_job(MPI_Comm communicator, const std::string& reason,
                            int status = 1) noexcept;

}  // namespace vellum

#endif  // VELLUM_MPI_HPP
