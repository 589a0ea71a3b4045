#include "store/branch/adopt_version.hpp"

#include <cassert>

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "store/catalog/names.hpp"
#include "store/catalog/snapshot_note.hpp"
#include "store/journal/read_journal.hpp"

namespace vellum::store {

SeenHead seen_head(const JournalState& journal) {
  return {journal.header.branch_id, journal.head_sequence(), journal.head_info().time_ns};
}

bool adopt_version(StoreDirectory& store, const std::string& branch, const SeenHead& seen,
                   const format::Version& version) {
  store.settle_name(branch);
  auto file = try_lock_branch(store, branch);
  if (file == nullptr) {
    fail(Errc::busy, "branch '{}' of {} has a writer{}: close it", branch, store.path(),
         base::lock_holders(store.journal_path(branch)));
  }
  JournalState state = read_journal(*file, store.file_seal());
  store.check_journal(file->path(), branch, state.header);
  auto journal = catch_up_with_snapshot(store, branch, file, state);
  if (seen_head(state) != seen) return false;
  format::Version base = version;
  base.branch_id = state.base.branch_id;
  base.active_pack = state.base.active_pack;
  base.active_pack_end_bytes = state.base.active_pack_end_bytes;
  base.next_pack_number = state.base.next_pack_number;
  assert(base.branch_id == state.header.branch_id);
  if (journal == nullptr) journal = std::make_unique<JournalWriter>(std::move(file), state);
  journal->start_line(base);
  return true;
}

}  // namespace vellum::store
