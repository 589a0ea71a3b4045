// group/remote/object_versions.hpp: a group's versions in object stores: each partition has a remote
// of its own (src/remote), and the records are beside them.
//
//   URL/partition-N   the remote of a partition's store
//   URL/records       group/versions/remote_records.hpp
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/files/file.hpp"
#include "group/remote_versions.hpp"
#include "remote/engine/object_store.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::group {

// The remote of a group, in the stores of its partitions.
inline constexpr const char* kGroupRemoteName = "vellum-group";

class ObjectVersions final : public RemoteVersions {
 public:
  // Errc::invalid_argument: the URL is malformed.
  ObjectVersions(base::Fs& fs, std::string url);
  std::uint64_t push(const std::string& store, std::uint32_t partition,
                     const std::string& pin) override;
  std::set<format::GroupPin> publish(const format::GroupFile& group,
                                     const format::GroupRecord& record,
                                     std::uint64_t epoch) override;
  void forget_except(const format::Uuid& group_id, std::uint32_t partition,
                     const std::set<format::GroupPin>& keep) override;

 private:
  struct Known {
    format::GroupPin pin;
    bool is_named = false;
  };
  base::Fs& fs_;
  const std::string url_;
  std::unique_ptr<remote::ObjectStore> records_;  // once it is used
  std::map<std::uint64_t, Known> known_;          // the records there, as far as they were read
};

// Makes the partition's remote known to its store.
void know_remote(store::StoreDirectory& store, const std::string& url);
// The pins of a partition that its remote has, also those of no version. None if there is no remote.
std::set<format::GroupPin> pins_at(base::Fs& fs, const std::string& url,
                                   const format::Uuid& group_id, std::uint32_t partition);

}  // namespace vellum::group
