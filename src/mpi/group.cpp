// vellum::Group: a job (group/job.hpp) over a communicator of MPI.
#include <utility>
#include <vellum/mpi.hpp>

#include "base/fail.hpp"
#include "group/group_version.hpp"
#include "group/job.hpp"
#include "group/region_partition.hpp"
#include "mpi/communicator.hpp"
#include "region/encode/encoding.hpp"

namespace vellum {

struct Group::Impl {
  Impl(MPI_Comm given, const std::string& records_directory, const GroupOptions& options)
      : communicator(given), records(records_directory) {
    // Errors in the options, too, come out on all ranks: the job's first call meets them.
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

struct PendingGroupVersion::Impl {
  std::weak_ptr<Group::Impl> group;
  std::shared_ptr<group::PendingVersion> pending;
};

namespace {

GroupReport report_of(group::JobReport&& report) {
  return {report.number, report.bytes_written, std::move(report.commits), report.slowest_time,
          report.coordination_time};
}

}  // namespace

GroupReport PendingGroupVersion::wait() {
  const auto group = impl_->group.lock();
  if (group == nullptr && !impl_->pending->is_done) {
    fail(Errc::invalid_argument, "the group has been closed: this version is not made");
  }
  if (group != nullptr) return report_of(group->job->finish(impl_->pending));
  impl_->pending->outcome.require();
  return report_of(group::JobReport(impl_->pending->report));
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
  if (impl_ == nullptr) fail(Errc::invalid_argument, "there is no group: it has been closed");
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

void Group::close() {
  const auto impl = std::exchange(impl_, nullptr);
  if (impl != nullptr) impl->job->close();
}

}  // namespace vellum
