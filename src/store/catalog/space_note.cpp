#include "store/catalog/space_note.hpp"

#include <algorithm>
#include <cassert>

namespace vellum::store {

namespace {

constexpr const char* kSpaceNoteName = "gc.space";

}  // namespace

format::SpaceNote read_space_note(PackStore& store) {
  format::SpaceNote note;
  try {
    const auto bytes =
        base::read_whole(store.fs(), space_note_path(store), format::kMaxSpaceNoteBytes);
    format::decode_space_note(bytes, store.file_seal(), note);
  } catch (const Error&) {
    // Then the growth is unknown.
  }
  return note;
}

std::string space_note_path(const PackStore& store) { return store.path() + "/" + kSpaceNoteName; }

std::uint64_t home_pack_bytes(PackStore& store) {
  const PackPlaces& places = store.packs().places();
  std::uint64_t sum = 0;
  for (const std::uint64_t pack : places.list_in(places.home())) {
    try {
      sum += store.fs().open(places.home_path(pack), base::OpenMode::read_only)->allocated_bytes();
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;  // removed just now
    }
  }
  return sum;
}

// Packs may have moved to an archive since, or may have been rewritten. The current size then
// replaces the noted one. Otherwise no data would count as new until the packs had their earlier
// size.
GcOutlook gc_outlook(PackStore& store, std::uint64_t slack_bytes) {
  format::SpaceNote note = read_space_note(store);
  const std::uint64_t now = home_pack_bytes(store);
  if (note.left_bytes > now) {
    note.left_bytes = now;
    write_space_note(store, note);
  }
  note.needed_bytes = std::min(note.needed_bytes, note.left_bytes);
  assert(note.left_bytes <= now);
  return {now - note.left_bytes, std::max(slack_bytes, note.needed_bytes / 5)};
}

void write_space_note(PackStore& store, const format::SpaceNote& note) {
  if (read_space_note(store) == note) return;
  try {
    base::replace_hint_file(store.fs(), store.tmp_directory(), store.path(), kSpaceNoteName,
                            format::encode_space_note(note, store.file_seal()));
  } catch (const Error&) {
    // The only effect: the next gc starts too early or too late.
  }
}

void remove_space_note(PackStore& store) {
  try {
    store.fs().unlink(space_note_path(store));
  } catch (const Error&) {
    // It was absent; or it stays, and the next gc starts too late.
  }
}

}  // namespace vellum::store
