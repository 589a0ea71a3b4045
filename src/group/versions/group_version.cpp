#include "group/versions/group_version.hpp"

#include "base/bytes/hex.hpp"
#include "base/clock.hpp"
#include "base/fail.hpp"
#include "group/pins.hpp"
#include "group/region_partition.hpp"
#include "group/versions/records.hpp"
#include "group/versions/remote_records.hpp"
#include "region/api/store_impl.hpp"
#include "remote/engine/url.hpp"

namespace vellum {

namespace group {

GroupVersionInfo info_of(const format::GroupRecord& record) {
  GroupVersionInfo info;
  info.number = record.number;
  info.epoch = record.epoch;
  info.name = record.name;
  info.message = record.message;
  info.created_at = base::time_point_of(record.created_ns);
  info.is_repeated = record.pin.epoch != record.epoch;
  info.partitions = static_cast<std::uint32_t>(record.partitions.size());
  for (const format::GroupPartition& p : record.partitions) {
    info.region_bytes += p.region_bytes;
    info.bytes_written += p.bytes_written;
  }
  return info;
}

std::string place_of_partition(const std::string& records, const std::string& stores,
                               std::uint32_t number, const format::GroupPartition& partition) {
  if (remote::is_remote_url(records)) return url_of_partition(records, number);
  if (!stores.empty()) return path_of_partition(stores, number);
  return path_from_record(partition.store, records);
}

void require_pin(const Store& store, bool is_remote, const std::string& pin,
                 const format::GroupPartition& partition) {
  const store::StoreDirectory& core = *StoreAccess::core_of(store);
  if (is_remote) {
    checked_copy(core, pin, partition);
  } else {
    checked_pin(core, pin, partition);
  }
}

}  // namespace group

const format::GroupPartition& GroupVersion::Impl::at(std::uint32_t number) const {
  if (number >= record.partitions.size()) {
    fail(Errc::invalid_argument, "{}: the group has no partition {}: it has {}", records, number,
         record.partitions.size());
  }
  return record.partitions[number];
}

std::string GroupVersion::Impl::store_path(std::uint32_t number) const {
  return vellum::group::place_of_partition(records, stores, number, at(number));
}

std::pair<Store, std::string> GroupVersion::Impl::open_store(std::uint32_t number) const {
  const format::GroupPartition& p = at(number);
  return with_context(fmt::format("partition {}", number), [&] {
    const bool is_remote = remote::is_remote_url(records);
    const std::string path = store_path(number);
    Store store = is_remote ? Store::open(path, remote) : Store::open(path);
    std::string pin = vellum::group::pin_name(group.id, number, record.pin);
    vellum::group::require_pin(store, is_remote, pin, p);
    return std::pair(std::move(store), std::move(pin));
  });
}

GroupVersion GroupVersion::open(const std::string& records, const std::string& version,
                                const std::string& stores) {
  const group::Records there(records, stores);
  return GroupAccess::of_record(records, stores, there.group(), there.find(version));
}

GroupVersion GroupVersion::open(const std::string& url, const std::string& version,
                                const RemoteOptions& options) {
  remote::parse_remote_url(url);
  const group::Records there(url);
  return GroupAccess::of_record(url, "", there.group(), there.find(version), options);
}

const GroupVersionInfo& GroupVersion::info() const noexcept { return impl_->info; }

std::uint32_t GroupVersion::partitions() const noexcept { return impl_->info.partitions; }

GroupPartitionInfo GroupVersion::partition(std::uint32_t number) const {
  const format::GroupPartition& p = impl_->at(number);
  GroupPartitionInfo info;
  info.number = number;
  info.store = impl_->store_path(number);
  info.store_id = base::hex(p.store_id);
  info.branch = p.branch;
  info.snapshot = group::pin_name(impl_->group.id, number, impl_->record.pin);
  info.host = p.host;
  info.sequence = p.sequence;
  info.region_bytes = p.region_bytes;
  info.bytes_written = p.bytes_written;
  return info;
}

Region GroupVersion::open_partition(std::uint32_t number, const RegionOptions& options) const {
  auto [store, pin] = impl_->open_store(number);
  return store.open_version(pin, options);
}

void GroupVersion::export_partition(std::uint32_t number, const std::string& file,
                                    const ProgressFn& progress) const {
  const auto [store, pin] = impl_->open_store(number);
  store.export_file(pin, file, progress);
}

std::vector<GroupVersionInfo> group_versions(const std::string& records) {
  std::vector<GroupVersionInfo> versions;
  for (const auto& record : group::Records(records).all()) {
    versions.push_back(group::info_of(record));
  }
  return versions;
}

}  // namespace vellum
