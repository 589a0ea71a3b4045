// store/catalog/space_note.hpp: the note that decides when the next gc is worthwhile.
//
// Each gc records in gc.space the size of the packs at home after it. Their growth since then is an
// upper bound of the new data that another gc could free. Removing a name removes the note: the
// growth is then unknown, and all data of packs counts as new.
#pragma once

#include "format/space_note.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// The space of the packs at home on the medium.
std::uint64_t home_pack_bytes(PackStore& store);

struct GcOutlook {
  std::uint64_t grown_bytes = 0;  // since the last gc
  // The growth at which gc is due: the larger of `slack_bytes` and a fifth of the needed data.
  std::uint64_t due_at_bytes = 0;
  bool is_due() const noexcept { return grown_bytes >= due_at_bytes; }
};
GcOutlook gc_outlook(PackStore& store, std::uint64_t slack_bytes);

// Zeros: there is none.
format::SpaceNote read_space_note(PackStore& store);
// Best effort: throws no Error. Does not write if the file has the same content.
void write_space_note(PackStore& store, const format::SpaceNote& note);
void remove_space_note(PackStore& store);

std::string space_note_path(const PackStore& store);

}  // namespace vellum::store
