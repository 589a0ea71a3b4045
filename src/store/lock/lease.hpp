// store/lock/lease.hpp: what keeps gc away from versions that someone has open.
//
// A version that is open needs its runs and records, although its snapshot may be removed and its
// branch may have folded them away since. So whoever opens one marks it: a shared lock on the first
// byte of its newest run's root, in the pack. Reading leaves no trace, and marks of the dead are
// gone. The fold that wrote the root left a copy of the version right behind it, which tells gc the
// other runs: what lies beneath a run never changes.
//
// Between reading a name and having marked what it leads to, gc must not look: a shared lock on a
// byte of `vellum.store` (store/lock/lock_bytes.hpp) keeps it away. It stands in for the mark,
// too, where none can be set: gc then waits and gives up with Errc::busy. To lock the byte alone,
// as gc does, takes the right to write the file; so whoever may only read a store keeps nobody else
// from reading it.
#pragma once

#include <chrono>
#include <memory>

#include "store/pack/pack_store.hpp"

namespace vellum::store {

using Lease = std::shared_ptr<const void>;

// While it lives, no gc begins to look at names. Hold it from resolving a name until what it led to
// is marked, published under another name, or not needed any more. Waits while a gc looks.
// Errc::busy when that takes long.
Lease hold_names(PackStore& store);

// Keeps all that `version` needs until the last copy dies. REQUIRES: `names` has been held since
// the version was found.
Lease keep_version(PackStore& store, Lease names, const format::Version& version);

// A file of the store that is there to be locked; made when it is not there.
std::shared_ptr<base::File> open_lock_file(PackStore& store, const std::string& name);

inline constexpr std::chrono::milliseconds kGcPatience{5000};  // who holds names for long does so
                                                               // for minutes

// While it lives, no gc is at work. nullptr: one is, one of this handle's waits for its turn, or
// here nobody can be kept out. Does not wait.
Lease keep_gc_out(PackStore& store);
// For gc: keeps other ones out. Errc::busy when one is at work, or a large commit goes on for long.
Lease keep_gc_for_us(PackStore& store, std::chrono::milliseconds patience = kGcPatience);

// For gc: keeps everybody else from holding names. Errc::busy when someone goes on holding them.
Lease hold_names_alone(PackStore& store, std::chrono::milliseconds patience = kGcPatience);
// Newest run roots of the versions that are open, in this process or another: pack and offset, in
// order. One may be of a version that has names, too.
struct RootPlace {
  std::uint64_t pack = 0, offset_bytes = 0;
  auto operator<=>(const RootPlace&) const = default;
};
std::vector<RootPlace> marked_roots(PackStore& store, const std::vector<std::uint64_t>& packs);

}  // namespace vellum::store
