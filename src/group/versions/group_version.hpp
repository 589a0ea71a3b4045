// group/versions/group_version.hpp: the implementation of a GroupVersion.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vellum/group.hpp>
#include <vellum/store.hpp>

#include "format/group.hpp"

namespace vellum {

struct GroupVersion::Impl {
  std::string records;  // directory, or the URL of the group's remote
  std::string stores;   // pattern; empty: the paths in the record
  RemoteOptions remote;
  format::GroupFile group;
  format::GroupRecord record;
  GroupVersionInfo info;

  const format::GroupPartition& at(std::uint32_t number) const;
  std::string store_path(std::uint32_t number) const;
  // The store of a partition, and its snapshot, checked.
  std::pair<Store, std::string> open_store(std::uint32_t number) const;
};

namespace group {
GroupVersionInfo info_of(const format::GroupRecord& record);
// The path of a partition's store, or the URL of its remote if `records` is a URL.
std::string place_of_partition(const std::string& records, const std::string& stores,
                               std::uint32_t number, const format::GroupPartition& partition);
// Checks the partition's snapshot in its store, or at its remote, against the record. Errors are
// those of checked_pin().
void require_pin(const Store& store, bool is_remote, const std::string& pin,
                 const format::GroupPartition& partition);
}  // namespace group

// Creates handles of records that the caller has read.
struct GroupAccess {
  static GroupVersion of_record(const std::string& records, const std::string& stores,
                                const format::GroupFile& group, format::GroupRecord record,
                                const RemoteOptions& remote = RemoteOptions()) {
    GroupVersionInfo info = vellum::group::info_of(record);
    return GroupVersion(std::make_shared<const GroupVersion::Impl>(
        GroupVersion::Impl{records, stores, remote, group, std::move(record), std::move(info)}));
  }
  static const GroupVersion::Impl& impl_of(const GroupVersion& version) { return *version.impl_; }
};

}  // namespace vellum
