// store/catalog/snapshot_note.hpp: a commit and the name of its snapshot are one step.
//
// A snapshot's commit is written so: its records; a note in the branch's directory, which names the
// snapshot and the journal's epoch; the ref, which is the commit point of both; the journal's next
// epoch, whose base is the snapshot. If a crash comes before the last step, the note leads to the
// ref, and the head is what the ref says. Everyone who reads a head asks here.
#pragma once

#include <optional>
#include <string>

#include "format/version.hpp"
#include "store/journal/journal_state.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// Durable on return. REQUIRES: the branch's journal is locked.
void write_snapshot_note(PackStore& store, const std::string& branch,
                         const format::SnapshotNote& note);

// The base of the epoch that a crash kept from beginning; none: the journal says what the head is.
// REQUIRES: `journal` was read from the branch.
std::optional<format::Version> snapshot_ahead(const PackStore& store, const std::string& branch,
                                              const JournalState& journal);

// The version that a branch stands on once it is the snapshot `name`.
format::Version base_after_snapshot(format::Version version, const std::string& name);

}  // namespace vellum::store
