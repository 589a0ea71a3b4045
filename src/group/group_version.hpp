// group/group_version.hpp: the object behind a GroupVersion.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vellum/group.hpp>
#include <vellum/store.hpp>

#include "format/group.hpp"
#include "group/record_directory.hpp"

namespace vellum {

struct GroupVersion::Impl {
  std::string records;  // directory
  std::string stores;   // pattern; empty: as the record says
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
}

// Makes handles of records that somebody else has read.
struct GroupAccess {
  static GroupVersion of_record(const std::string& records, const std::string& stores,
                                const format::GroupFile& group, format::GroupRecord record) {
    GroupVersionInfo info = vellum::group::info_of(record);
    return GroupVersion(std::make_shared<const GroupVersion::Impl>(
        GroupVersion::Impl{records, stores, group, std::move(record), std::move(info)}));
  }
  static const GroupVersion::Impl& impl_of(const GroupVersion& version) { return *version.impl_; }
};

}  // namespace vellum
