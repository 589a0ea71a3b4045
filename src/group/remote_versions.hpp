// group/remote_versions.hpp: the interface to a group's versions in object stores; src/group/remote
// implements it.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "format/group.hpp"

namespace vellum::group {

class RemoteVersions {
 public:
  virtual ~RemoteVersions() = default;
  // Makes a partition's part of a version durable in the partition's remote. Returns the number of
  // uploaded bytes. Threads: any, one at a time.
  virtual std::uint64_t push(const std::string& store, std::uint32_t partition,
                             const std::string& pin) = 0;
  // Publishes the record, the commit point at the remote; then removes the records of older
  // versions without a name, and returns the pins that the remaining ones need. Errc::busy: a job
  // after that of `epoch` has published a record. REQUIRES: every partition has been pushed.
  virtual std::set<format::GroupPin> publish(const format::GroupFile& group,
                                             const format::GroupRecord& record,
                                             std::uint64_t epoch) = 0;
  // Removes the other pins of a partition from its remote. REQUIRES: no record there needs them.
  virtual void forget_except(const format::Uuid& group_id, std::uint32_t partition,
                             const std::set<format::GroupPin>& keep) = 0;
};

}  // namespace vellum::group
