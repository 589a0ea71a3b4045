// group/remote_versions.hpp: the second strength of a group's versions: durable in object stores, as a
// job sees it. src/group/remote has it.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "format/group.hpp"

namespace vellum::group {

class RemoteVersions {
 public:
  virtual ~RemoteVersions() = default;
  // Makes a partition's part of a version durable in the partition's remote. Returns the bytes that
  // were uploaded. Threads: one at a time, any.
  virtual std::uint64_t push(const std::string& store, std::uint32_t partition,
                             const std::string& pin) = 0;
  // The commit point there. REQUIRES: every partition has been pushed. Then removes the records of
  // older versions without a name, and returns the pins that the remaining ones need. Errc::busy:
  // a job after that of `epoch` has published one.
  virtual std::set<format::GroupPin> publish(const format::GroupFile& group,
                                             const format::GroupRecord& record,
                                             std::uint64_t epoch) = 0;
  // Forgets the other pins of a partition in its remote. REQUIRES: no record there has them.
  virtual void forget_except(const format::Uuid& group_id, std::uint32_t partition,
                             const std::set<format::GroupPin>& keep) = 0;
};

}  // namespace vellum::group
