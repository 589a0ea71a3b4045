#include "store/catalog/snapshots/snapshot_note.hpp"

#include <cassert>

#include "base/fail.hpp"
#include "store/catalog/snapshots/refs.hpp"
#include "store/journal/read_journal.hpp"

namespace vellum::store {
namespace {

std::string note_path(const PackStore& store, const std::string& branch) {
  return store.branch_directory(branch) + "/" + kSnapshotNoteName;
}

// Also none if a crash tore it: no later step was done then.
std::optional<format::SnapshotNote> read_note(const PackStore& store, const std::string& branch) {
  const std::string file = note_path(store, branch);
  if (!store.fs().exists(file)) return std::nullopt;
  format::SnapshotNote note;
  try {
    const auto bytes = base::read_whole(store.fs(), file, format::kSnapshotNoteBytes);
    if (format::decode_snapshot_note(bytes, store.file_seal(), note) != nullptr) {
      return std::nullopt;
    }
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted && e.code() != Errc::not_found) throw;
    return std::nullopt;
  }
  return note;
}

std::optional<format::Version> version_of(const PackStore& store, const std::string& snapshot) {
  try {
    if (has_snapshot(store, snapshot)) return read_snapshot(store, snapshot).version;
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
  return std::nullopt;
}

}  // namespace

void write_snapshot_note(PackStore& store, const std::string& branch,
                         const format::SnapshotNote& note) {
  assert(!note.name.empty());
  const auto bytes = format::encode_snapshot_note(note, store.file_seal());
  const std::string path = note_path(store, branch);
  if (!store.fs().exists(path)) {
    base::publish_file(store.fs(), store.tmp_directory(), store.branch_directory(branch),
                       kSnapshotNoteName, bytes, true);
    return;
  }
  const auto file = store.fs().open(path, base::OpenMode::read_write);
  file->pwrite(bytes, 0);
  file->sync_data();
}

std::optional<format::Version> snapshot_ahead(const PackStore& store, const std::string& branch,
                                              const JournalState& journal) {
  const auto note = read_note(store, branch);
  if (!note || note->branch_id != journal.header.branch_id || note->epoch != journal.epoch) {
    return std::nullopt;
  }
  auto version = version_of(store, note->name);
  const std::uint64_t head = journal.head_sequence();
  if (!version || version->branch_id != note->branch_id ||
      (version->sequence != head && version->sequence != head + 1)) {
    return std::nullopt;
  }
  return base_after_snapshot(std::move(*version), note->name);
}

std::unique_ptr<JournalWriter> catch_up_with_snapshot(const PackStore& store,
                                                      const std::string& branch,
                                                      std::unique_ptr<base::File>& file,
                                                      JournalState& state) {
  const auto ahead = snapshot_ahead(store, branch, state);
  if (!ahead.has_value()) return nullptr;
  auto journal = std::make_unique<JournalWriter>(std::move(file), state);
  journal->start_epoch(*ahead);
  state = read_journal(journal->file(), store.file_seal());
  return journal;
}

format::Version base_after_snapshot(format::Version version, const std::string& name) {
  version.parent = name;
  version.pages_changed = 0;
  version.bytes_added = 0;
  return version;
}

}  // namespace vellum::store
