// vellum/group.hpp: versions of a group, read without the job that created them.
//
// A group is one logical data set split into partitions: each is a branch of a store, written by
// one rank of a parallel job (vellum/mpi.hpp). A global version is one version of every partition,
// and exists whole or not at all: a record in the group's directory of records names them all.
//
// This header needs neither MPI nor several processes: a reader on one machine reads all partitions
// whose stores it can reach, however many ranks wrote them. A version is named by its name, or by
// its number in decimal digits; "" is the newest. The record has the paths of the stores, unless
// `stores` is given: a path in which "{}" stands for the partition's number.
//
// Calls that only read also accept the URL of the group's remote instead of a directory of records
// (GroupOptions::remote: s3://bucket/prefix, file:///path; vellum/remote.hpp). They then see the
// versions that are complete there, and need neither stores nor a restore: pages are fetched from
// the partition's remote (Store::open() of a URL). `stores` must be empty then.
//
// Threads: every call may be made from any thread, as with Store. Errors are vellum::Error.
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
  std::uint64_t number = 0;  // increased by one for each version
  std::uint64_t epoch = 0;   // of the job that wrote the record; increased by one for each job
  std::string name;          // empty: the version stays until the next one
  std::string message;
  // When the version was created. A job begins by repeating the version that it found, under a new
  // number.
  std::chrono::system_clock::time_point created_at;
  bool is_repeated = false;
  std::uint32_t partitions = 0;
  std::uint64_t region_bytes = 0;   // of all partitions
  std::uint64_t bytes_written = 0;  // to the stores, by the commits of the version
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

// A version, as its record describes it. Copies share it. The record is read once; the stores are
// opened on demand.
class GroupVersion {
 public:
  // Errc::not_found: there is no group, or no such version; corrupted names the record.
  [[nodiscard]] static GroupVersion open(const std::string& records,
                                         const std::string& version = std::string(),
                                         const std::string& stores = std::string());
  // The same, only for a URL.
  [[nodiscard]] static GroupVersion open(const std::string& url, const std::string& version,
                                         const RemoteOptions& options);

  const GroupVersionInfo& info() const noexcept;
  std::uint32_t partitions() const noexcept;
  // Errc::invalid_argument: there is no such partition, here and below.
  GroupPartitionInfo partition(std::uint32_t number) const;
  // Read-only. Errc::not_found: the store does not exist, or is another one, or no longer has the
  // version (a later version without a name replaces one without a name, also at a remote);
  // corrupted: it has another version under that name. Each message names the partition.
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
  std::vector<GroupProblem> problems;  // by version, then partition; empty: no problem
};
// Checks which partitions lack their part of a version. With `read_data` it also reads and verifies
// every byte of the stores (Store::verify()), or of the remotes. A missing part is no error of the
// call; a record that fails its checks is one.
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
// Removes superseded versions without a name that a killed job has left, and snapshots of versions
// that were never whole; then collects each store (Store::collect_garbage()). Errc::busy: a job has
// the group open. A store that cannot be opened is skipped until the next call. invalid_argument:
// `records` is a URL, here and below. The next push removes other versions from a remote.
GroupGcReport collect_group_garbage(const std::string& records, bool dry_run = false,
                                    const std::string& stores = std::string(),
                                    const ProgressFn& progress = nullptr);

// Removes a version that has a name; the next collection frees its space. The newest version loses
// only its name. Errc::not_found, busy.
void remove_group_version(const std::string& records, const std::string& name);

}  // namespace vellum

#endif  // VELLUM_GROUP_HPP
