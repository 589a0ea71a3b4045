// store/catalog/lock/name_lock.hpp: the lock for making or removing a name.
//
// Branches and snapshots share one name space but lie in two directories, so no single call of the
// file system tells whether a name is free. Code that makes or removes a name locks it first: one
// byte of `vellum.store`, far behind the file's end, at an offset that follows from the name. The
// lock dies with its holder and leaves no trace. Two names may share a byte; their holders then
// take turns, and nothing else happens.
//
// Order: a name is locked before names are held (store/catalog/lock/version_pin.hpp) and before its
// branch's journal is locked. No caller locks two names.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/files/file.hpp"

namespace vellum::store {

class PackStore;

// A name that stays locked until the last copy dies.
class NameLock {
 public:
  const std::string& name() const noexcept { return name_; }

 private:
  friend NameLock lock_name(PackStore& store, const std::string& name);
  friend std::optional<NameLock> try_lock_name(PackStore& store, const std::string& name);
  NameLock(std::string name, std::shared_ptr<const base::File> file)
      : name_(std::move(name)), file_(std::move(file)) {}
  std::string name_;
  std::shared_ptr<const base::File> file_;
};

// Waits for the holder. Errc::busy when that takes long (a large snapshot is being written).
NameLock lock_name(PackStore& store, const std::string& name);
// Does not wait. Empty: the name is locked already.
std::optional<NameLock> try_lock_name(PackStore& store, const std::string& name);

}  // namespace vellum::store
