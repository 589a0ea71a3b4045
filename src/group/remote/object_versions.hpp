// group/remote/object_versions.hpp: a group's versions in object stores: a remote for each
// partition (src/remote), and the records next to them.
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

// The name of a group's remote in the stores of its partitions.
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
  struct KnownRecord {
    format::GroupPin pin;
    bool is_named = false;
  };
  base::Fs& fs_;
  const std::string url_;
  std::unique_ptr<remote::ObjectStore> records_;  // opened at its first use
  std::map<std::uint64_t, KnownRecord> known_;    // the records that were read
};

// Adds the partition's remote to its store.
void know_remote(store::StoreDirectory& store, const std::string& url);
// All pins of a partition at its remote, even those of no version. Empty: no remote.
std::set<format::GroupPin> pins_at(base::Fs& fs, const std::string& url,
                                   const format::Uuid& group_id, std::uint32_t partition);

}  // namespace vellum::group
