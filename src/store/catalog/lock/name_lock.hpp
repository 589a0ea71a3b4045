// store/catalog/lock/name_lock.hpp: the lock for creating or removing a name.
//
// Branches and snapshots share one name space but are in two directories, so no single call of the
// file system can check whether a name is free. Code that creates or removes a name locks it first:
// one byte of `vellum.store`, far behind the file's end, at an offset computed from the name. The
// lock ends with its process and leaves no trace. If two names share a byte, their holders exclude
// each other, without other effects.
//
// Order: a name is locked before NamesShared (store/catalog/lock/version_pin.hpp) and before its
// branch's journal. No caller locks two names.
#pragma once

#include <cassert>
#include <memory>
#include <optional>
#include <string>

#include "base/files/file.hpp"

namespace vellum::store {

class PackStore;

// A name that stays locked until the last copy is destroyed.
class NameLock {
 public:
  const std::string& name() const noexcept { return name_; }

 private:
  friend NameLock lock_name(PackStore& store, const std::string& name);
  friend std::optional<NameLock> try_lock_name(PackStore& store, const std::string& name);
  NameLock(std::string name, std::shared_ptr<const base::File> file)
      : name_(std::move(name)), file_(std::move(file)) {
    assert(!name_.empty() && file_ != nullptr);
  }
  std::string name_;
  std::shared_ptr<const base::File> file_;
};

// Waits for the holder. Errc::busy if that takes long (a large snapshot is being written).
NameLock lock_name(PackStore& store, const std::string& name);
// Does not wait. Empty: the name is already locked.
std::optional<NameLock> try_lock_name(PackStore& store, const std::string& name);

}  // namespace vellum::store
