#include "store/branch/branch_writer.hpp"

#include <cassert>
#include <exception>
#include <utility>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "store/branch/branch_writer_impl.hpp"
#include "store/branch/checkpoint/checkpoint.hpp"
#include "store/branch/checkpoint/depth_table.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/signing_key.hpp"
#include "store/catalog/snapshots/snapshot_note.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/journal/read_journal.hpp"
#include "store/packs/encode/payload.hpp"
#include "store/packs/io_cost.hpp"
#include "store/page_map/run_builder.hpp"
#include "store/page_map/run_reader.hpp"

namespace vellum::store {

using format::MapEntry;
using format::PageNumber;
using format::Version;

// With the pages of a tree. REQUIRES: `version` has the runs of the last checkpoint.
const PageSource& BranchWriter::Impl::last_checkpointed(const Version& version) {
  if (checkpointed == nullptr) checkpointed = open_with_tree(store, version, label);
  return *checkpointed;
}

void BranchWriter::Impl::check_not_poisoned() const {
  if (poison.empty()) return;
  fail(Errc::poisoned, "{}: an earlier flush failed, reopen to recover: {}", label, poison);
}

// Packs and names are opened by path, so the path must still name this store.
void BranchWriter::Impl::check_in_place() const {
  if (!journal->file().replaced()) return;
  fail(Errc::io,
       "{}: {} is not the file that was opened: the store has been moved, or another one is in its "
       "place. Close the region, and open it where the store is now",
       label, journal->file().path());
}

IoCost BranchWriter::Impl::io() const noexcept {
  return journal->io() + (background != nullptr ? pack_io : packs->io()) - background_io;
}

// After a failed sync the state of the files is unknown, so the branch is poisoned and the files stay
// untouched. Otherwise drops the appended records, as if nothing had happened. A background
// checkpoint is the only one that has appended any, so its records stay.
void BranchWriter::Impl::give_up_checkpoint(const char* reason) noexcept {
  if (!poison.empty()) return;
  if (background != nullptr) {
    if (journal->sync_failed() && poison.empty()) poison = reason;
    return;
  }
  if (packs->sync_failed() || journal->sync_failed()) {
    if (poison.empty()) poison = reason;
    return;
  }
  if (std::exchange(checkpointing, false)) chains.clear();
  packs->abandon();
  counted_bytes = packs->bytes_appended();
}

namespace {

std::uint64_t pages_of(std::span<const MapEntry> entries) {
  std::uint64_t pages = 0;
  for_each_newest(entries,
                  [&](const MapEntry&, PageNumber first, PageNumber end) { pages += end - first; });
  return pages;
}

}  // namespace

// Writes the new entries as a run. Old runs to be merged are merged into it at once, so the entries
// are written only once.
void BranchWriter::Impl::add_run(Version& next, std::vector<MapEntry> entries,
                                 EncodingThreads& threads) {
  std::vector<format::RunRef> runs = std::move(next.runs);
  runs.insert(runs.begin(), format::RunRef{{}, entries.size()});
  std::size_t merge = 1;
  if (!entries.empty()) merge = std::max<std::size_t>(runs_to_merge(runs), 1);
  auto merged = with_context(label, [&] {
    std::vector<std::shared_ptr<const LoadedRun>> older;
    for (std::size_t i = 1; i < merge; ++i) older.push_back(load_run(store, runs[i]));
    return read_all_entries(store, older);
  });
  merged.insert(merged.begin(), std::move(entries));
  assert(merge <= runs.size());
  const auto result = merge_runs(merged, merge == runs.size());
  next.runs.clear();
  if (!result.empty()) next.runs.push_back(write_run(*packs, threads, result));
  next.runs.insert(next.runs.end(), runs.begin() + static_cast<std::ptrdiff_t>(merge), runs.end());
}

// Called before add_run(): the copy of the version must follow the run's root.
void BranchWriter::Impl::write_hashes(const Dedup& known) {
  const auto noted = known.noted();
  for (std::size_t first = 0; first < noted.size(); first += format::kMaxPageHashes) {
    const std::size_t count = std::min<std::size_t>(noted.size() - first, format::kMaxPageHashes);
    const auto payload =
        encode_payload(packs->compressor(), base::Compression::zstd, kMetadataZstdLevel,
                       format::encode_page_hashes(std::span(noted).subspan(first, count)));
    packs->append({format::RecordType::hashes, payload.codec, payload.raw_bytes, payload.stored,
                   static_cast<std::uint32_t>(count)});
  }
}

std::vector<MapEntry> BranchWriter::Impl::write_pieces(const Version& last,
                                                       std::span<const PageWrites* const> pieces,
                                                       std::vector<MapEntry> written,
                                                       const CommittedPages* committed,
                                                       Dedup& known, EncodingThreads& threads) {
  const CheckpointContext context{store,
                                  *packs,
                                  encoding,
                                  known,
                                  chains,
                                  threads,
                                  [&]() -> const PageSource& { return last_checkpointed(last); },
                                  committed};
  return checkpoint_pieces(context, pieces, std::move(written));
}

// Writes the pieces, oldest first, and the entries in `written` to the packs. Replaces the counts of
// `next`. REQUIRES: its runs and counts are those of the last checkpoint.
std::vector<MapEntry> BranchWriter::Impl::write_changes(
    Version& next, const std::vector<const PageWrites*>& pieces, std::vector<MapEntry> written,
    const CommittedPages* committed, Dedup& known, EncodingThreads& threads) {
  assert(packs->bytes_appended() >= counted_bytes);
  auto entries = write_pieces(next, pieces, std::move(written), committed, known, threads);
  chains.depths.update(entries);
  next.pages_changed += pages_of(entries);
  write_hashes(known);
  return entries;
}

void BranchWriter::Impl::write_map(Version& next, std::vector<MapEntry> entries,
                                   EncodingThreads& threads) {
  if (!entries.empty()) add_run(next, std::move(entries), threads);
  write_version_copy(next, next.bytes_added);
}

// A copy for repair, and for gc while the version is open; also of a version whose pages a push has
// written, all of them. The position that it states for the pack is that before the copy. Syncs the
// pack.
void BranchWriter::Impl::write_version_copy(Version& next, std::uint64_t before) {
  const auto set_position = [&] {
    next.bytes_added = before + (packs->bytes_appended() - counted_bytes);
    next.active_pack = packs->active_pack();
    next.active_pack_end_bytes = packs->end_bytes();
    next.next_pack_number = packs->next_pack_number();
  };
  if (packs->dirty() || next.runs != journal->base().runs) {
    set_position();
    const auto payload = encode_payload(packs->compressor(), base::Compression::zstd,
                                        kMetadataZstdLevel, format::encode_version(next));
    packs->append(
        {format::RecordType::version, payload.codec, payload.raw_bytes, payload.stored, 1}, false);
    packs->sync();
  }
  set_position();
}

// Writes the note of a snapshot in the writer's thread: its flush takes as long as the hashes of some
// hundred pages. The writer writes no other file meanwhile, unless its buffer is full.
class BranchWriter::Impl::BackgroundNote {
 public:
  BackgroundNote(Impl& writer, const NameLock& claim) : writer_(writer) {
    assert(writer.thread.idle());
    const auto write = [this, &claim]() noexcept {
      try {
        writer_.write_note(claim);
      } catch (...) {
        failure_ = std::current_exception();
      }
    };
    try {
      if (writer.store.writer_policy().checkpoints.in_call) {
        write();
      } else {
        writer.thread.start(write);
      }
    } catch (const Error&) {
      write();  // no thread is available
    }
  }
  ~BackgroundNote() { writer_.thread.wait_idle(); }
  BackgroundNote(const BackgroundNote&) = delete;
  BackgroundNote& operator=(const BackgroundNote&) = delete;

  void finish() {
    writer_.thread.wait_idle();
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  Impl& writer_;
  std::exception_ptr failure_;
};

// Makes `target` the head: the journal's commits, the pieces of one more commit, and the entries
// that this commit has written. Of the journal's commits, what a push has staged is not written
// again, unless this commit has used the packs already. REQUIRES: no background, and `target` is the
// head or its successor.
void BranchWriter::Impl::checkpoint(const Version& target, std::span<const PageWrites> commit,
                                    std::vector<MapEntry> written, const CommittedPages* committed,
                                    const NewSnapshot* snapshot) {
  assert(background == nullptr);
  assert(target.sequence == head.sequence || target.sequence == head.sequence + 1);
  assert(target.branch_id == head.branch_id && target.runs == head.runs);
  Version next = target;
  std::optional<StagedCommits> staged;  // keeps gc out until the end
  if (!epoch.empty() && written.empty() && !dedup.active()) staged = staged_commits(head.sequence);
  std::vector<const PageWrites*> pieces;
  if (staged.has_value()) {
    append_pointers(staged->rest, pieces);
  } else {
    append_pointers(epoch, pieces);
  }
  append_pointers(commit, pieces);
  EncodingThreads threads(store.pool(), packs->compressor());
  checkpointing = true;
  try {
    if (staged.has_value()) continue_from(*staged, next);
    auto entries = write_changes(next, pieces, std::move(written), committed, dedup, threads);
    std::optional<Signing> signing;
    if (snapshot != nullptr && !snapshot->key.empty()) {
      BackgroundNote note(*this, snapshot->claim);
      signing = begin_signing(snapshot->key, snapshot->claim.name(), next);
      write_tree(next, entries, committed, *signing, threads);
      note.finish();
    }
    write_map(next, std::move(entries), threads);
    if (snapshot != nullptr) {
      if (!signing.has_value()) write_note(snapshot->claim);
      start_epoch_at_snapshot(snapshot->claim, next, signing.has_value() ? &*signing : nullptr);
    } else {
      journal->start_epoch(next);
    }
    dedup.leave(true);
  } catch (const std::exception& e) {
    dedup.leave(false);
    checkpointed.reset();  // it may be that of the staged commits
    give_up_checkpoint(e.what());
    throw;
  }
  accept(std::move(next));
}

// A checkpoint that was published is the head.
void BranchWriter::Impl::accept(Version next) {
  checkpointing = false;
  packs->note_committed();
  counted_bytes = packs->bytes_appended();
  if (next.runs != head.runs) checkpointed.reset();
  head = std::move(next);
  epoch.clear();
  epoch_raw_bytes = 0;
  background_failed = false;
}

std::optional<StagedCommits> BranchWriter::Impl::staged_commits(std::uint64_t sequence) const {
  return find_staged_commits(store, *journal, sequence, encoding, label);
}

void BranchWriter::Impl::continue_from(const StagedCommits& staged, Version& next) {
  staged.move_to(next);
  checkpointed.reset();
  chains.clear();
}

void BranchWriter::Impl::write_note(const NameLock& claim) const {
  write_snapshot_note(store, name, {head.branch_id, journal->epoch(), claim.name()});
}

// Publishes `version` as a snapshot and starts an epoch whose base it is. On return, `version` is that
// base. The ref file is the commit point of both (store/catalog/snapshots/snapshot_note.hpp). After an error the
// name is free, unless a sync failed. REQUIRES: the records of the version are synced, and write_note().
void BranchWriter::Impl::start_epoch_at_snapshot(const NameLock& claim, Version& version,
                                                 const Signing* signing) {
  format::SnapshotRef ref;
  ref.branch = name;
  ref.created_ns = base::wall_clock_ns();
  ref.name = claim.name();
  ref.version = version;
  if (signing != nullptr) sign_statement(store, *signing, ref);
  try {
    store.create_snapshot(claim, ref);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists && has_snapshot(store, claim.name())) poison = e.what();
    throw;
  }
  if (signing != nullptr) {
    signed_last = std::move(ref);
    keeps_last = true;
  }
  version = base_after_snapshot(std::move(version), claim.name());
  try {
    journal->start_epoch(version);
  } catch (const std::exception& e) {
    withdraw_snapshot(claim, e.what());
    throw;
  }
}

// Keeps the name if the epoch may have started after all: the next writer resolves that.
void BranchWriter::Impl::withdraw_snapshot(const NameLock& claim, const char* reason) noexcept {
  if (journal->sync_failed()) {
    poison = reason;
    return;
  }
  try {
    store.remove_snapshot(claim);
  } catch (const std::exception& e) {
    poison = e.what();
  }
}

BranchWriter::BranchWriter() = default;

std::shared_ptr<PageSource> BranchWriter::source_at_open() const { return impl_->source_at_open; }
const Version& BranchWriter::head() const noexcept { return impl_->head; }
const format::Encoding& BranchWriter::encoding() const noexcept { return impl_->encoding; }
std::uint64_t BranchWriter::backlog_bytes() const noexcept {
  return impl_->journal == nullptr ? 0 : impl_->journal->used_bytes();
}
void BranchWriter::require_in_place() const { impl_->check_in_place(); }
bool BranchWriter::in_place() const noexcept {
  try {
    return !impl_->journal->file().replaced();
  } catch (const std::exception&) {
    return false;
  }
}

void BranchWriter::checkpoint_journal() {
  Impl& w = *impl_;
  w.check_not_poisoned();
  w.check_in_place();
  w.settle_background();
  if (!w.epoch.empty()) w.checkpoint(w.head, {}, {});
}

BranchWriter::~BranchWriter() {
  if (impl_ == nullptr || impl_->packs == nullptr) return;  // open() has thrown
  Impl& w = *impl_;
  if (w.journal == nullptr || !w.poison.empty()) return;
  try {
    w.check_in_place();
    w.settle_background();
    if (!w.epoch.empty()) w.checkpoint(w.head, {}, {});
    w.journal->release_space();
  } catch (...) {
    // The journal has all commits; the next writer checkpoints them.
  }
}

std::shared_ptr<PageSource> BranchWriter::open_head() const {
  const Impl& w = *impl_;
  NamesShared names(w.store);
  JournalState now = read_journal(w.journal->file(), w.store.file_seal());
  auto source = PageSource::open(w.store, now.base, std::move(now.commits), w.label);
  source->keep(VersionPin(w.store, std::move(names), now.base));
  return source;
}

void BranchWriter::publish_snapshot(const std::string& name, const std::string& message) {
  publish_snapshot(claim_name(impl_->store, name), message);
}

void BranchWriter::publish_snapshot(const NameLock& claim, const std::string& message) {
  Impl& w = *impl_;
  w.check_not_poisoned();
  w.check_in_place();
  if (!w.epoch.empty()) {
    fail(Errc::invalid_argument, "{}: a snapshot needs a checkpointed commit", w.label);
  }
  if (message.size() > format::kMaxMessageBytes) {
    fail(Errc::invalid_argument, "{}: a message of {} bytes is too long", w.label, message.size());
  }
  Version version = w.head;
  version.message = message;
  try {
    const base::Secret key = signing_key_for(w.store, w.name);
    auto signing = w.begin_signing(key, claim.name(), version);
    if (signing.has_value()) w.write_tree_of_head(version, *signing);
    w.write_note(claim);
    w.start_epoch_at_snapshot(claim, version, signing.has_value() ? &*signing : nullptr);
    w.dedup.leave(true);
  } catch (const std::exception& e) {
    w.dedup.leave(false);
    w.give_up_checkpoint(e.what());
    throw;
  }
  w.checkpointing = false;
  w.packs->note_committed();
  w.counted_bytes = w.packs->bytes_appended();
  if (version.runs != w.head.runs) w.checkpointed.reset();
  version.message = w.head.message;
  w.head = std::move(version);
}

}  // namespace vellum::store
