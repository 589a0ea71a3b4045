// vellum/mpi.hpp: one version over many ranks of MPI.
//
//   vellum::GroupOptions options;
//   options.store = "/local/job/store-{}";       // a store for each rank
//   options.region_bytes = 1 << 30;
//   auto group = vellum::Group::open(MPI_COMM_WORLD, "/shared/job/records", options);
//   auto* mine = group.region().array<double>(1 << 20);   // plain memory, as ever
//   ...
//   group.snapshot("step-1000");                 // on all ranks, or on none
//
// A group is one datum in partitions, each a branch of a store of its own: on a disk of its node,
// or in a shared directory. A *global version* is one version of every partition. It exists from the
// moment at which rank 0 has published its record, which names the version of each partition. After
// a crash of any rank, of all of them, or of the job, open() gives exactly what the newest record
// says, on all ranks; whatever a partition has committed since is discarded.
//
// Calls are collective unless said otherwise: all ranks of the communicator make the same calls in
// the same order, and return or throw together. An error on one rank is thrown on all of them as the
// same vellum::Error, which names the rank. When a call cannot be made at all (a rank was killed),
// MPI ends the job, as it does for any collective call.
//
// MPI has to be initialised; MPI_THREAD_SINGLE suffices. The group uses a communicator of its own,
// made of the one that is given. Threads: one call at a time for each group; loads, stores and the
// calls of regions as ever, except that a region's own commit() and snapshot() belong to no global
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

// All but `mine` and `store` have to be the same on all ranks; `store` may be another path on each
// node.
struct GroupOptions {
  // The path of each partition's store; "{}" stands for the partition's number. A new group makes
  // them; their parents must exist. A store that exists already is taken in with the content of its
  // branch, unless it belongs to another group.
  std::string store;
  std::string branch = "main";
  std::uint64_t region_bytes = 0;  // of each partition of a new group
  // How many partitions a new group has; 0: one for each rank. It never changes, whatever the number
  // of ranks: see `mine`.
  std::uint32_t partitions = 0;
  // The partitions that this rank opens; nothing: its even share, in order. Each partition has to be
  // opened by exactly one rank; a rank may open none.
  std::optional<std::vector<std::uint32_t>> mine;
  // The version to go on from: a name, or a number. Empty: the newest. Versions after it that have
  // no name are discarded.
  std::string version;
  // Where versions become durable a second time, by push(): an object store, s3://bucket/prefix or
  // file:///path (docs/guides/remotes.md). Each partition has a remote there. Empty: nowhere.
  std::string remote;
  RegionOptions region;    // without an image
  StoreOptions new_store;  // of stores that are made
};

struct GroupReport {
  std::uint64_t number = 0;              // of the global version
  std::uint64_t bytes_written = 0;       // to the stores, by all ranks
  std::vector<CommitReport> commits;     // of this rank's partitions
  std::chrono::nanoseconds own_time{0};  // from the call until this rank's commits are durable
  // The own time of the slowest rank, and what the call took beyond it: the collective calls, the
  // record, and the time by which that rank has made its call later than this one.
  std::chrono::nanoseconds slowest_time{0};
  std::chrono::nanoseconds coordination_time{0};
};

class Group;

// A version in the making: see Group::snapshot_async().
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

// A version on its way to the remote: see Group::push_async().
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
  std::uint64_t partitions_fetched = 0;  // by all ranks; the others were there
  std::uint64_t bytes_read = 0;
};

class Group {
 public:
  // Makes the group if the directory of records has none; its parent must exist. Only rank 0 uses
  // the directory. Each branch goes back to what the version's record says; then the job publishes
  // a record of its own, with the same versions.
  //  - Errc::busy: another job has the group open: it holds a lock in the directory, or the lock of
  //    a branch. Where locks do not reach (two machines, a file system without them), the other job
  //    is fenced instead: its next version fails with Errc::busy.
  //  - not_found, corrupted: a record, a store or a version is not there, or is not what the record
  //    says. Nothing has been discarded on the ranks that say so. An older version can be chosen by
  //    `version`.
  [[nodiscard]] static Group open(MPI_Comm communicator, const std::string& records,
                                  const GroupOptions& options);
  Group() noexcept;  // no group: every call is invalid_argument
  ~Group();          // closes it, errors swallowed
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;

  // Not collective.
  std::uint32_t partitions() const;  // of the group
  const std::vector<std::uint32_t>& mine()
      const;                     // this rank's, in the order in which they were asked for
  std::uint64_t number() const;  // of the last global version
  std::uint64_t epoch() const;   // of this job; one more for each job
  // The region of a partition of this rank; without a number, of its only one. It stays the
  // group's: it is closed with it. Errc::invalid_argument: it is not this rank's.
  Region& region(std::uint32_t partition);
  Region& region();

  // A global version without a name: it stays until the next one. (Its part in each store is a
  // snapshot, so it costs what snapshot() costs.)
  GroupReport commit(const std::string& message = std::string());
  // A global version that stays until it is removed (remove_group_version()). Errc::already_exists:
  // nothing is committed.
  //
  // After an error there is no new version, the last one stays, memory is unchanged, and the next
  // call includes everything. busy after a job has taken over, and poisoned: this job makes no more
  // versions; open the group again, which finds this version whole or not at all.
  GroupReport snapshot(const std::string& name, const std::string& message = std::string());
  // As snapshot(), but the call only finds and copies the written pages; a thread of each region
  // writes them. The version is made by wait(), or by the next collective call of the group: until
  // then a crash gives the version before. An empty name: as commit(). The call itself is not
  // collective beyond the ranks' order of calls: nobody waits in it.
  [[nodiscard]] PendingGroupVersion snapshot_async(const std::string& name,
                                                   const std::string& message = std::string());
  // All memory goes back to the last global version. REQUIRES: no other thread uses the regions
  // meanwhile. A region that has grown since a version that failed keeps its size, with zeros.
  void rollback();
  // A version to read, on every rank; any rank may then open any partition that it can reach, and
  // need not ask the others.
  [[nodiscard]] GroupVersion open_version(const std::string& version = std::string());

  // Makes a version durable in the remote, so that it survives the loss of stores: a name or a
  // number; empty: the last one. Each rank uploads what the remote of its partition lacks; the
  // version's record goes there when all have succeeded. So the remote has a version whole or not
  // at all, and the newest one there is complete. Versions without a name are forgotten there when a
  // newer one has come; their space returns with `vellum remote gc`.
  //
  // Errc::invalid_argument: the group has no remote; busy: another job has taken over, or another
  // push of a store is at work; io and the like: a rank has not reached its remote. The group goes
  // on in any case, and the next push uploads only what is still missing.
  GroupPushReport push(const std::string& version = std::string());
  // The same by a thread of each rank; compute and make versions in between. The version is whole at
  // the remote when wait() has returned, or the next push. One at a time: another push waits first.
  [[nodiscard]] PendingGroupPush push_async(const std::string& version = std::string());

  // Makes a version of the remote the newest of the group again: `options.version`, or the newest
  // that is complete there. Stores that are lost come back, stores that lack the version get it, and
  // what else is there stays until open(). Each rank restores the partitions that it would open. May
  // be cut off, and called again. `options`: remote, store, version, mine; partitions and sizes are
  // those of the remote's. Errc::not_found: the remote has no such version; busy: a job has the group
  // open; invalid_argument: `records` is another group's; already_exists: something that is no store
  // has the path of one.
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

// For the handler around a job's work: says the reason on standard error, with the rank, waits until
// the launcher has read it, and calls MPI_Abort(). (MPICH's launcher drops what lies in its pipes when
// a rank aborts, so that a user would not learn the reason.) Not collective.
[[noreturn]] void abort_job(MPI_Comm communicator, const std::string& reason,
                            int status = 1) noexcept;

}  // namespace vellum

#endif  // VELLUM_MPI_HPP
