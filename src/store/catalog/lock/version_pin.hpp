// store/catalog/lock/version_pin.hpp: version pins that keep gc away from open versions.
//
// An open version needs its runs and records even when its snapshot has been removed or its branch
// has checkpointed them away since. So opening a version pins it: a shared lock on the first
// byte of its newest run's root, in the pack. Reading leaves no trace, and the pins of dead
// processes are gone. The checkpoint that wrote the root put a copy of the version right behind it.
// The copy tells gc the other runs: the runs beneath a run never change.
//
// Between the reading of a name and the pinning of its version, gc must not look. A shared lock on
// a byte of `vellum.store` (store/catalog/lock/lock_bytes.hpp) keeps it away. That lock also stands in for
// a pin that cannot be set: gc then waits and gives up with Errc::busy. An exclusive lock on the
// byte, as gc takes it, needs permission to write the file, so a user who may only read a store
// keeps nobody else from reading it.
#pragma once

#include <chrono>
#include <memory>

#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

using VersionPin = std::shared_ptr<const void>;

// While it lives, no gc begins to look at names. Hold it from resolving a name until the version
// found is pinned, published under another name or no longer needed. Waits while a gc looks.
// Errc::busy when that takes long.
VersionPin hold_names(PackStore& store);

// Keeps everything that `version` needs until the last copy dies. REQUIRES: `names` has been held
// since the version was found.
VersionPin keep_version(PackStore& store, VersionPin names, const format::Version& version);

// Opens a file of the store that exists only to be locked; makes it if it is absent.
std::shared_ptr<base::File> open_lock_file(PackStore& store, const std::string& name);

inline constexpr std::chrono::milliseconds kGcPatience{5000};  // names that are held for long
                                                               // are held for minutes

// While it lives, no gc is at work. nullptr: a gc is at work, a gc of this handle waits for its
// turn, or gc cannot be kept out here. Does not wait.
VersionPin keep_gc_out(PackStore& store);
// The same from the first hold() on, until release(). Threads: one at a time.
class GcKeptOut {
 public:
  explicit GcKeptOut(PackStore& store) : store_(store) {}
  // False: it cannot be kept out; release() comes before the next try.
  bool hold();
  void release() noexcept {
    pin_.reset();
    tried_ = false;
  }

 private:
  PackStore& store_;
  VersionPin pin_;
  bool tried_ = false;
};
// For gc: keeps other gcs out. Errc::busy when one is at work or a large commit takes long.
VersionPin keep_gc_for_us(PackStore& store, std::chrono::milliseconds patience = kGcPatience);

// For gc: keeps all others from holding names. Errc::busy when one of them goes on holding them.
VersionPin hold_names_alone(PackStore& store, std::chrono::milliseconds patience = kGcPatience);
// The newest run roots of the versions that are open in this or another process: pack and offset,
// in order. A root may also belong to a version that has names.
struct RootPlace {
  std::uint64_t pack = 0, offset_bytes = 0;
  auto operator<=>(const RootPlace&) const = default;
};
std::vector<RootPlace> pinned_roots(PackStore& store, const std::vector<std::uint64_t>& packs);

}  // namespace vellum::store
