// store/catalog/space_note.hpp: when the next gc is worth it.
//
// Each gc leaves in gc.space what packs at home take after it. What they take more by now is the
// most that another gc could free of what was written since, by whichever process. Who removes a
// name removes the note: then nobody knows, and all that packs take counts as new.
#pragma once

#include "format/space_note.hpp"
#include "store/pack/pack_store.hpp"

namespace vellum::store {

// What the packs at home take on the medium.
std::uint64_t home_pack_bytes(PackStore& store);

struct GcOutlook {
  std::uint64_t grown_bytes = 0;  // since the last gc
  std::uint64_t due_at_bytes =
      0;  // of that: the larger of `slack_bytes` and a fifth of what is needed
  bool is_due() const noexcept { return grown_bytes >= due_at_bytes; }
};
GcOutlook gc_outlook(PackStore& store, std::uint64_t slack_bytes);

// As well as it goes: throws no Error. What the file says already is not written again.
void write_space_note(PackStore& store, const format::SpaceNote& note);
void remove_space_note(PackStore& store);

std::string space_note_path(const PackStore& store);

}  // namespace vellum::store
