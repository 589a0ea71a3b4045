// vellum/group.hpp: versions of a group, read without the job that made them.
//
// A group is one datum in many partitions: each a branch of a store, written by one rank of a
// parallel job (vellum/mpi.hpp). A global version is one version of every partition, and exists
// whole or not at all: a record in the group's directory of records names them all.
//
// What is here needs no MPI and one process: a reader on one machine sees all partitions whose
// stores it can reach, however many ranks wrote them. A version is named by its name, or by its
// number in decimal digits; "" is the newest. Stores are where the record says, unless `stores`
// says otherwise: a path in which "{}" stands for the partition's number.
//
// In place of a directory of records, what only reads takes the URL of the group's remote as well
// (GroupOptions::remote: s3://bucket/prefix, file:///path; vellum/remote.hpp). Then it sees the
// versions that are complete there, and neither stores nor a restore are needed: what is touched of a
// partition comes from its remote (Store::open() of a URL). `stores` has to be empty then.
//
// Threads: any, as with Store.
#ifndef VELLUM_GROUP_HPP
#define VELLUM_GROUP_HPP

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <vellum/error.hpp>
#include <vellum/region.hpp>
#include <vellum/remote_options.hpp>
#include <vellum/report.hpp>

namespace vellum {

struct GroupVersionInfo {
  std::uint64_t number = 0;  // one more for each version
  std::uint64_t epoch = 0;   // of the job that wrote the record; one more for each job
  std::string name;          // empty: the version stays until the next one
  std::string message;
  // When the version was made. A job begins by repeating the version that it found, under a number
  // of its own.
  std::chrono::system_clock::time_point created_at;
  bool is_repeated = false;
  std::uint32_t partitions = 0;
  std::uint64_t region_bytes = 0;   // of all partitions
  std::uint64_t bytes_written = 0;  // to the stores, by the commits that made the version
};

struct GroupPartitionInfo {
  std::uint32_t number = 0;
  std::string store;     // path, or the URL of the partition's remote
  std::string store_id;  // 32 hex digits
  std::string branch;
  std::string snapshot;  // the version in the store
  std::string host;      // where the rank ran
  std::uint64_t sequence = 0;
  std::uint64_t region_bytes = 0;
  std::uint64_t bytes_written = 0;
};

// A version, as its record has it. Copies share it. The record is read once; the stores are opened
// when they are asked for.
class GroupVersion {
 public:
  // Errc::not_found: there is no group, or no such version; corrupted names the record.
  [[nodiscard]] static GroupVersion open(const std::string& records,
                                         const std::string& version = std::string(),
                                         const std::string& stores = std::string());
  // The same, of a URL alone.
  [[nodiscard]] static GroupVersion open(const std::string& url, const std::string& version,
                                         const RemoteOptions& options);

  const GroupVersionInfo& info() const noexcept;
  std::uint32_t partitions() const noexcept;
  // Errc::invalid_argument: there is no such partition, here and below.
  GroupPartitionInfo partition(std::uint32_t number) const;
  // Read-only. Errc::not_found: the store is not there, or is another one, or no longer has the
  // version (a later one without a name takes the place of one without a name, also at a remote);
  // corrupted: it has another one under that name. Each names the partition.
  [[nodiscard]] Region open_partition(std::uint32_t number,
                                      const RegionOptions& options = RegionOptions()) const;
  // As Store::export_file().
  void export_partition(std::uint32_t number, const std::string& file,
                        const ProgressFn& progress = nullptr) const;

 private:
  friend struct GroupAccess;  // src/group/versions/group_version.hpp
  struct Impl;
  explicit GroupVersion(std::shared_ptr<const Impl> impl) noexcept : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// All versions, oldest first.
std::vector<GroupVersionInfo> group_versions(const std::string& records);

// A partition that lacks its part of a version, or whose part is damaged.
struct GroupProblem {
  std::uint64_t version = 0;
  std::uint32_t partition = 0;
  std::string store;
  std::string reason;
};

struct GroupVerifyReport {
  std::uint64_t versions = 0;
  std::uint64_t complete = 0;          // versions that all partitions have
  std::uint64_t stores = 0;            // reached
  std::vector<GroupProblem> problems;  // by version, then partition; empty: all is well
};
// Looks which partitions lack what. With `read_data` it also reads and checks every byte of the
// stores (Store::verify()), or of what the remotes hold. What is missing is no error of the call; a record that fails its checks
// is one.
GroupVerifyReport verify_group(const std::string& records, bool read_data = false,
                               const std::string& stores = std::string(),
                               const ProgressFn& progress = nullptr);

struct GroupGcReport {
  std::uint64_t records_removed = 0;
  std::uint64_t snapshots_removed = 0;  // in all stores
  std::uint64_t stores = 0;             // collected
  std::uint64_t freed_bytes = 0;        // 0 in a dry run
  std::uint64_t freeable_bytes = 0;
  std::vector<std::string> unreachable;  // stores that could not be opened, with the reason
};
// Removes what no version needs: superseded versions without a name that a killed job has left, and
// snapshots of versions that were never whole; then collects each store (Store::collect_garbage()).
// Errc::busy: a job has the group open. A store that is not there is left for the next time.
// invalid_argument: `records` is a URL, here and below. What a remote holds of other versions is
// forgotten by the next push.
GroupGcReport collect_group_garbage(const std::string& records, bool dry_run = false,
                                    const std::string& stores = std::string(),
                                    const ProgressFn& progress = nullptr);

// Removes a version that has a name: the space comes back with the next collection. The newest
// version loses only its name. Errc::not_found, busy.
void remove_group_version(const std::string& records, const std::string& name);

}  // namespace vellum

#endif  // VELLUM_GROUP_HPP
