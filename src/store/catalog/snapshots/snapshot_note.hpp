// store/catalog/snapshots/snapshot_note.hpp: a commit and the name of its snapshot are one step.
//
// Order of writes of a snapshot's commit: its records; a note in the branch's directory with the
// snapshot's name and the journal's epoch, which may also precede the records; the ref, which is the commit point of both; the
// journal's next epoch, whose base is the snapshot. After a crash before the last step, the note
// identifies the ref, which has the head. All readers of a head check for it with snapshot_ahead(),
// all that write the journal with catch_up_with_snapshot().
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "format/version.hpp"
#include "store/journal/journal_writer.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

inline constexpr const char* kSnapshotNoteName = "snapshot";  // in the branch's directory

// Durable on return. REQUIRES: the branch's journal is locked.
void write_snapshot_note(PackStore& store, const std::string& branch,
                         const format::SnapshotNote& note);

// The base of the epoch that a crash prevented; none: the journal has the head. REQUIRES: `journal`
// was read from the branch.
std::optional<format::Version> snapshot_ahead(const PackStore& store, const std::string& branch,
                                              const JournalState& journal);

// Starts the epoch that a crash prevented, and reads `state` again. Null, and `file` is untouched:
// the journal has the head. REQUIRES: the branch is locked by `file`; `state` was read from it.
std::unique_ptr<JournalWriter> catch_up_with_snapshot(const PackStore& store,
                                                      const std::string& branch,
                                                      std::unique_ptr<base::File>& file,
                                                      JournalState& state);

// The base of a branch whose head is the snapshot `name`.
format::Version base_after_snapshot(format::Version version, const std::string& name);

}  // namespace vellum::store
