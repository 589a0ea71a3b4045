// group/versions/records.hpp: reads the records of a group, in a directory or at its remote.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/group.hpp"
#include "remote/engine/object_store.hpp"

namespace vellum::group {

class Records {
 public:
  // `where` is a directory of records or the URL of a group's remote; `stores` is the pattern of
  // the stores' paths, for a directory only. Errc::not_found: no group; corrupted;
  // invalid_argument.
  explicit Records(std::string where, const std::string& stores = std::string());

  bool are_remote() const noexcept { return objects_ != nullptr; }
  const format::GroupFile& group() const noexcept { return group_; }
  // A version by name or number; empty: the newest. Errc::not_found, corrupted.
  format::GroupRecord find(const std::string& version) const;
  // All records, oldest first, without those that are removed meanwhile.
  std::vector<format::GroupRecord> all() const;

 private:
  const std::string where_;
  std::unique_ptr<remote::ObjectStore> objects_;  // null: a directory
  format::GroupFile group_;
};

}  // namespace vellum::group
