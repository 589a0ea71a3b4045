#include "store/branch/leave_pack.hpp"

#include <algorithm>
#include <cassert>

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "store/catalog/names.hpp"
#include "store/catalog/snapshot_note.hpp"
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
