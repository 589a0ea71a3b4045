// store/catalog/space_note.hpp: the note that tells when the next gc is worthwhile.
//
// Each gc records in gc.space how much the packs at home take after it. Their growth since then is
// the most that another gc could free of the data that any process has written since. Removing a
// name removes the note: the growth is then unknown, and everything that packs take counts as new.
#pragma once

#include "format/space_note.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// The space that the packs at home take on the medium.
std::uint64_t home_pack_bytes(PackStore& store);

struct GcOutlook {
  std::uint64_t grown_bytes = 0;  // since the last gc
  std::uint64_t due_at_bytes =
      0;  // due at this growth: the larger of `slack_bytes` and a fifth of what is needed
  bool is_due() const noexcept { return grown_bytes >= due_at_bytes; }
};
GcOutlook gc_outlook(PackStore& store, std::uint64_t slack_bytes);

// Zeros: there is none.
format::SpaceNote read_space_note(PackStore& store);
// Best effort: throws no Error. Leaves the file alone if it says the same already.
void write_space_note(PackStore& store, const format::SpaceNote& note);
void remove_space_note(PackStore& store);

std::string space_note_path(const PackStore& store);

}  // namespace vellum::store
