#include "store/branch/changed_branch.hpp"

#include <algorithm>
#include <cassert>

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "store/branch/checkpointed_head.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/names.hpp"
#include "store/catalog/signing_key.hpp"
#include "store/catalog/snapshots/snapshot_note.hpp"
#include "store/journal/read_journal.hpp"

namespace vellum::store {
namespace {

bool is_written(const base::File& journal, const format::FileSeal& seal, std::uint64_t pack) {
  return std::ranges::any_of(read_base_versions(journal, seal),
                             [&](const auto& base) { return base.active_pack == pack; });
}

// The journal keeps two base frames, and a power cut may restore the earlier one: both are written.
void leave(StoreDirectory& store, const std::string& branch, std::uint64_t pack) {
  store.settle_name(branch);
  auto file = try_lock_branch(store, branch);
  if (file == nullptr) {
    fail(Errc::busy,
         "branch '{}' of {} has a writer{}, and its pack {:016x} has to be written again: close it",
         branch, store.path(), base::lock_holders(store.journal_path(branch)), pack);
  }
  JournalState state = read_journal(*file, store.file_seal());
  store.check_journal(file->path(), branch, state.header);
  auto journal = catch_up_with_snapshot(store, branch, file, state);
  format::Version base = state.base;
  if (base.active_pack == pack) base.active_pack = base.active_pack_end_bytes = 0;
  std::vector<std::vector<std::byte>> commits;
  for (const format::CommitBody& commit : state.commits) {
    commits.push_back(format::encode_commit(commit));
  }
  assert(base.active_pack != pack);
  const std::vector<format::Payload> payloads(commits.begin(), commits.end());
  if (journal == nullptr) journal = std::make_unique<JournalWriter>(std::move(file), state);
  journal->start_epoch(base, payloads);
  journal->start_epoch(base, payloads);
}

}  // namespace

SeenHead seen_head(const JournalState& journal) {
  return {journal.header.branch_id, journal.head_sequence(), journal.head_info().time_ns};
}

bool adopt_version(StoreDirectory& store, const std::string& branch, const SeenHead& seen,
                   const format::Version& version) {
  store.settle_name(branch);
  auto file = lock_branch(store, branch);
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

// The journal stays locked: no commit comes between the new name and the end of the old one. Of the
// two names, one is locked at a time.
void rename_branch(StoreDirectory& store, const std::string& from, const std::string& to) {
  if (!has_branch(store, from)) fail(Errc::not_found, "no branch '{}' in {}", from, store.path());
  store.settle_name(from);
  const auto journal = lock_branch(store, from);
  {
    const NameLock claim = claim_name(store, to);
    const CheckpointedHead head(store, from);
    // A gc has read all names before the new one is there, or finds it.
    const NamesShared names(store);
    store.create_branch_at(claim, head.version(), head.head().version.parent, head.head().encoding);
    set_signers(store, to, signers_of(store, from));
  }
  const NameLock lock = lock_name(store, from);
  store.drop_branch(from, *journal);
}

void leave_pack(StoreDirectory& store, std::uint64_t pack) {
  for (const std::string& branch : store.branch_names()) {
    try {
      const auto file = store.fs().open(store.journal_path(branch), base::OpenMode::read_only);
      if (!is_written(*file, store.file_seal(), pack)) continue;
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;  // removed just now
      continue;
    }
    leave(store, branch, pack);
  }
}

}  // namespace vellum::store
