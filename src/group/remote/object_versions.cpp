#include "group/remote/object_versions.hpp"

#include "base/fail.hpp"
#include "group/pins.hpp"
#include "group/versions/remote_records.hpp"
#include "remote/engine/url.hpp"
#include "remote/push.hpp"
#include "remote/session/known_remotes.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/upkeep.hpp"

namespace vellum::group {

ObjectVersions::ObjectVersions(base::Fs& fs, std::string url) : fs_(fs), url_(std::move(url)) {
  remote::parse_remote_url(url_of_records(url_));
}

void know_remote(store::StoreDirectory& store, const std::string& url) {
  for (const std::string& name : remote::remote_names(store)) {
    if (name != kGroupRemoteName) continue;
    if (remote::read_remote_file(store, name).url == url) return;
    remote::remove_remote_file(store, name);
  }
  remote::add_remote_file(store, kGroupRemoteName, url, false);
}

std::uint64_t ObjectVersions::push(const std::string& path, std::uint32_t partition,
                                   const std::string& pin) {
  const auto store = store::StoreDirectory::open(fs_, path);
  know_remote(*store, url_of_partition(url_, partition));
  remote::Session session(*store, kGroupRemoteName);
  return remote::push(session, {{pin}, false}, {}).bytes_uploaded;
}

std::set<format::GroupPin> ObjectVersions::publish(const format::GroupFile& group,
                                                   const format::GroupRecord& record,
                                                   std::uint64_t epoch) {
  if (records_ == nullptr) records_ = remote::open_object_store(fs_, url_of_records(url_));
  const RemoteRecords records(*records_);
  records.claim(group);
  records.publish(record, group, epoch);
  known_[record.number] = {record.pin, !record.name.empty()};
  std::set<format::GroupPin> keep;
  for (const std::uint64_t number : records.numbers()) {
    if (!known_.contains(number)) {
      const auto other = records.read(number, group);
      known_[number] = {other.pin, !other.name.empty()};
    }
    const KnownRecord& known = known_[number];
    if (!known.is_named && number < record.number) {
      records.remove(number);
    } else {
      keep.insert(known.pin);
    }
  }
  return keep;
}

void ObjectVersions::forget_except(const format::Uuid& group_id, std::uint32_t partition,
                                   const std::set<format::GroupPin>& keep) {
  const auto objects = remote::open_object_store(fs_, url_of_partition(url_, partition));
  const remote::Remote remote(*objects, remote::read_superblock(*objects).store_id);
  std::vector<std::string> names;
  for (const remote::RemoteVersion& name : remote.newest_head().head.versions) {
    const auto pin = parse_pin(group_id, partition, name.ref.name);
    if (pin.has_value() && !keep.contains(*pin)) names.push_back(name.ref.name);
  }
  if (!names.empty()) remote::forget_names(remote, names);
}

std::set<format::GroupPin> pins_at(base::Fs& fs, const std::string& url,
                                   const format::Uuid& group_id, std::uint32_t partition) {
  std::set<format::GroupPin> pins;
  const auto objects = remote::open_object_store(fs, url_of_partition(url, partition));
  const remote::Remote remote(*objects, remote::read_superblock(*objects).store_id);
  for (const remote::RemoteVersion& name : remote.newest_head().head.versions) {
    if (const auto pin = parse_pin(group_id, partition, name.ref.name)) pins.insert(*pin);
  }
  return pins;
}

}  // namespace vellum::group
