// store/branch/recovery.cpp: opening a branch for writing: the lock, the state of the last writer.
#include <algorithm>
#include <cassert>

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "store/branch/branch_writer_impl.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/names.hpp"
#include "store/catalog/snapshots/snapshot_note.hpp"
#include "store/journal/read_journal.hpp"
#include "store/page_map/overlay.hpp"

namespace vellum::store {

std::unique_ptr<BranchWriter> BranchWriter::open(StoreDirectory& store, const std::string& branch,
                                                 const std::optional<format::Encoding>& encoding) {
  std::unique_ptr<BranchWriter> writer(new BranchWriter());
  if (encoding.has_value()) store.check_encoding(*encoding);
  writer->impl_ = std::make_unique<Impl>(store, branch);
  Impl& w = *writer->impl_;
  store.settle_name(branch);
  auto file = try_lock_branch(store, branch);
  if (file == nullptr) {
    fail(Errc::busy, "{} has a writer already{}", w.label,
         base::lock_holders(store.journal_path(branch)));
  }
  // Pages may be read from this head long after later commits have replaced it.
  NamesShared names(store);
  JournalState state = read_journal(*file, store.file_seal());
  store.check_journal(file->path(), branch, state.header);
  w.journal = catch_up_with_snapshot(store, branch, file, state);
  w.encoding = encoding.value_or(state.header.encoding.value_or(store.superblock()));
  w.head = format::head_version(state.base, state.commits);
  with_context(w.label, [&] {
    check_raw_bytes(state.commits, store.superblock().journal_half_bytes);
    for (const auto& commit : state.commits) {
      w.epoch_raw_bytes += raw_bytes_of(commit);
      auto pieces = parse_commit(format::CommitBody(commit));
      std::move(pieces.begin(), pieces.end(), std::back_inserter(w.epoch));
    }
  });
  w.source_at_open = PageSource::open(store, state.base, state.commits, w.label);
  w.source_at_open->keep(VersionPin(store, std::move(names), state.base));
  // Nothing is written before everything has been read and checked.
  assert(w.head.sequence == state.head_sequence());
  assert(w.head.branch_id == state.header.branch_id);
  w.packs = std::make_unique<PackWriter>(store, state.header.branch_id, state.base);
  if (w.journal == nullptr) w.journal = std::make_unique<JournalWriter>(std::move(file), state);
  return writer;
}

}  // namespace vellum::store
