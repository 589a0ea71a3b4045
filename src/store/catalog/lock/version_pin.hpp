// store/catalog/lock/version_pin.hpp: the locks between gc and the users of names and versions.
//
//   type             excludes                  held
//   NamesShared      NamesExclusive            from the look-up of a name until the version is pinned
//   NamesExclusive   NamesShared               while gc reads the names, or a pack is replaced
//   VersionPin       removal of its data       while the version is open
//                    (of an unpinned version:
//                    NamesExclusive of gc)
//   GcShared         GcExclusive               while a commit refers to data that gc may free
//   GcExclusive      GcShared, GcExclusive     by gc, and by all that move or replace packs
//
// An open version needs its runs and records even after its snapshot is removed, or after its
// branch checkpoints past it. Therefore opening a version pins it: a shared lock on the first byte
// of its newest run's root, in the pack. Pins die with their process, and reading leaves no trace.
// The checkpoint that wrote the root wrote a copy of the version directly behind it. From the copy
// gc knows the other runs: the runs beneath a run never change.
//
// Between the look-up of a name and the pin of its version, gc must not read the names:
// NamesShared, a shared lock on a byte of `vellum.store` (store/catalog/lock/lock_bytes.hpp),
// excludes it. A shared lock on another byte of `vellum.store` replaces a pin that cannot be set: gc
// then waits and fails with Errc::busy. Other holders of NamesExclusive do not wait for it, because
// they keep every record. An exclusive lock on a byte needs permission to write the file. Therefore
// a user who may only read a store excludes no other reader.
//
// A pull may replace a pack while it is pinned. The former file then has a second name, by which gc
// finds the pin (store/packs/former_file.hpp).
//
// Order: GcExclusive or GcShared before NamesShared or NamesExclusive.
#pragma once

#include <cassert>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

inline constexpr std::chrono::milliseconds kGcPatience{5000};  // a lock on names that is held for
                                                               // longer is held for minutes

// Copies share the lock; the last one releases it.
class NamesShared {
 public:
  // Waits while a gc reads the names. Errc::busy when that takes long.
  explicit NamesShared(PackStore& store);

 private:
  friend class VersionPin;
  std::shared_ptr<const base::File> file_;
};

// Whether versions that are open without a pin exclude a NamesExclusive. They must if it frees data.
enum class UnpinnedVersions { may_be_open, must_be_closed };

class NamesExclusive {
 public:
  // Waits for the holders of NamesShared. Errc::busy when `patience` is not enough.
  explicit NamesExclusive(PackStore& store, std::chrono::milliseconds patience = kGcPatience,
                          UnpinnedVersions unpinned = UnpinnedVersions::may_be_open);

 private:
  std::shared_ptr<const base::File> file_;
};

class GcShared {
 public:
  // Does not wait. Empty: a gc runs, a gc of this handle waits for its lock, or the file system
  // does not support the lock.
  static std::optional<GcShared> try_lock(PackStore& store);

 private:
  explicit GcShared(std::shared_ptr<const base::File> file) : file_(std::move(file)) {
    assert(file_ != nullptr);
  }
  std::shared_ptr<const base::File> file_;
};

// A GcShared that is taken on demand. Threads: one at a time.
class DeferredGcShared {
 public:
  explicit DeferredGcShared(PackStore& store) : store_(store) {}
  // Tries to lock at the first call after construction or release(). False: that try failed.
  bool lock();
  void release() noexcept {
    lock_.reset();
    tried_ = false;
  }

 private:
  PackStore& store_;
  std::optional<GcShared> lock_;
  bool tried_ = false;
};

class GcExclusive {
 public:
  // Errc::busy when `patience` is not enough: another gc runs, or a large commit takes long.
  explicit GcExclusive(PackStore& store, std::chrono::milliseconds patience = kGcPatience);

 private:
  std::shared_ptr<const base::File> file_;
};

// Copies share the pin; the last one releases it, which may be after the store is closed.
class VersionPin {
 public:
  VersionPin() = default;  // pins nothing
  // Pins everything that `version` needs, and releases `names`. A version that cannot be pinned
  // keeps gc from the whole store. REQUIRES: `names` has been held since the version was found.
  VersionPin(PackStore& store, NamesShared names, const format::Version& version);
  explicit operator bool() const noexcept { return pin_ != nullptr; }
  void reset() noexcept { pin_.reset(); }

 private:
  std::shared_ptr<const void> pin_;
};

// Opens a file of the store that serves only as a lock; creates it if it is absent.
std::shared_ptr<base::File> open_lock_file(PackStore& store, const std::string& name);

// The newest run roots of the versions that are open in this or another process: pack and offset,
// in order. A root may also belong to a version that has names.
struct RootPlace {
  std::uint64_t pack = 0, offset_bytes = 0;
  auto operator<=>(const RootPlace&) const = default;
};
std::vector<RootPlace> pinned_roots(PackStore& store, const std::vector<std::uint64_t>& packs);

// Whether a process has a version open, and opened it while packs of the store were remote: a lazy
// clone. It may read pieces at the remote for as long as the version is open, even if the packs are
// files by now.
bool has_remote_readers(PackStore& store);

}  // namespace vellum::store
