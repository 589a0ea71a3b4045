// vellum::Group: a job (group/job.hpp) over a communicator of MPI.
#include <utility>
#include <vellum/mpi.hpp>

#include "base/fail.hpp"
#include "group/job.hpp"
#include "group/mpi/communicator.hpp"
#include "group/region_partition.hpp"
#include "group/remote/object_versions.hpp"
#include "group/remote/restore.hpp"
#include "group/versions/group_version.hpp"
#include "region/encode/encoding.hpp"

namespace vellum {

struct Group::Impl {
  Impl(MPI_Comm given, const std::string& records_directory, const GroupOptions& options)
      : communicator(given), records(records_directory) {
    // An error in the options reaches all ranks by the job's first collective call.
    std::optional<group::RegionPartitions> partitions;
    const group::Outcome outcome = group::attempt([&] {
      partitions.emplace(group::RegionPartitionOptions{
          options.store, options.branch, options.region_bytes, options.new_store, options.region});
    });
    group::require_on_all(communicator, outcome);
    job = std::make_unique<group::Job>(base::posix_fs(), communicator, job_options(options),
                                       *partitions);
  }

  group::JobOptions job_options(const GroupOptions& options) const {
    group::JobOptions result;
    result.records = records;
    result.partitions = options.partitions;
    result.mine = options.mine;
    result.version = options.version;
    result.branch = options.branch;
    if (!options.remote.empty()) {
      result.remote = std::make_shared<group::ObjectVersions>(base::posix_fs(), options.remote);
    }
    result.encoding = region::to_format(options.region.encoding);
    result.store_path = [pattern = options.store, directory = records](std::uint32_t partition) {
      return group::path_for_record(group::path_of_partition(pattern, partition), directory);
    };
    return result;
  }

  mpi::Communicator communicator;
  const std::string records;
  std::unique_ptr<group::Job> job;
};

struct PendingGroupPush::Impl {
  std::weak_ptr<Group::Impl> group;
  std::shared_ptr<group::PendingPush> pending;
};

struct PendingGroupVersion::Impl {
  std::weak_ptr<Group::Impl> group;
  std::shared_ptr<group::PendingVersion> pending;
};

using mpi::report_of;

GroupReport PendingGroupVersion::wait() {
  const auto group = impl_->group.lock();
  if (group == nullptr && !impl_->pending->is_done) {
    fail(Errc::invalid_argument, "the group has been closed: this version was not created");
  }
  if (group != nullptr) return report_of(group->job->finish(impl_->pending));
  impl_->pending->outcome.require();
  return report_of(group::JobReport(impl_->pending->report));
}

GroupPushReport PendingGroupPush::wait() {
  const auto group = impl_->group.lock();
  if (group == nullptr && !impl_->pending->is_done) {
    fail(Errc::invalid_argument, "the group has been closed: this version is not at the remote");
  }
  if (group != nullptr) group->job->finish_push(impl_->pending);
  impl_->pending->outcome.require();
  return {impl_->pending->number, impl_->pending->bytes_uploaded};
}

Group::Group() noexcept = default;
Group::Group(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Group::~Group() = default;
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;

Group Group::open(MPI_Comm communicator, const std::string& records, const GroupOptions& options) {
  return Group(std::make_shared<Impl>(communicator, records, options));
}

Group::Impl& Group::opened() const {
  if (impl_ == nullptr) fail(Errc::invalid_argument, "the group has been closed");
  return *impl_;
}

std::uint32_t Group::partitions() const { return opened().job->group().partitions; }
const std::vector<std::uint32_t>& Group::mine() const { return opened().job->mine(); }
std::uint64_t Group::number() const { return opened().job->number(); }
std::uint64_t Group::epoch() const { return opened().job->epoch(); }

Region& Group::region(std::uint32_t partition) {
  return group::region_of(opened().job->memory(partition));
}

Region& Group::region() {
  const auto& numbers = mine();
  if (numbers.size() != 1) {
    fail(Errc::invalid_argument, "this rank has {} partitions: region() needs a number",
         numbers.size());
  }
  return region(numbers[0]);
}

GroupReport Group::commit(const std::string& message) {
  return report_of(opened().job->snapshot("", message));
}

GroupReport Group::snapshot(const std::string& name, const std::string& message) {
  Impl& impl = opened();
  if (name.empty()) fail(Errc::invalid_argument, "a snapshot needs a name");
  return report_of(impl.job->snapshot(name, message));
}

PendingGroupVersion Group::snapshot_async(const std::string& name, const std::string& message) {
  Impl& impl = opened();
  auto pending = std::make_shared<PendingGroupVersion::Impl>();
  pending->pending = impl.job->snapshot_async(name, message);
  pending->group = impl_;
  return PendingGroupVersion(std::move(pending));
}

void Group::rollback() { opened().job->rollback(); }

GroupVersion Group::open_version(const std::string& version) {
  Impl& impl = opened();
  return GroupAccess::of_record(impl.records, "", impl.job->group(),
                                impl.job->read_record(version));
}

GroupPushReport Group::push(const std::string& version) { return push_async(version).wait(); }

PendingGroupPush Group::push_async(const std::string& version) {
  Impl& impl = opened();
  auto pending = std::make_shared<PendingGroupPush::Impl>();
  pending->pending = impl.job->push_async(version);
  pending->group = impl_;
  return PendingGroupPush(std::move(pending));
}

GroupRestoreReport Group::restore(MPI_Comm given, const std::string& records,
                                  const GroupOptions& options) {
  mpi::Communicator communicator(given);
  group::RestoreReport report = group::restore_group(
      base::posix_fs(), communicator,
      {options.remote, records, options.version, options.store, options.mine}, {});
  return {report.number, report.restored_number, std::move(report.name), report.partitions_fetched,
          report.bytes_read};
}

void Group::close() {
  const auto impl = std::exchange(impl_, nullptr);
  if (impl != nullptr) impl->job->close();
}

}  // namespace vellum
