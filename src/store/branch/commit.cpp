// store/branch/commit.cpp: a commit, from its pieces to the journal, or to packs by a checkpoint.
//
// append_to_journal() is the whole small commit in order. Its commit point is marked there.
#include <algorithm>
#include <cassert>
#include <mutex>
#include <optional>

#include "base/fail.hpp"
#include "store/branch/branch_writer_impl.hpp"
#include "store/branch/checkpoint/checkpoint.hpp"
#include "store/catalog/signing_key.hpp"
#include "store/packs/io_cost.hpp"
#include "store/page_map/overlay.hpp"
#include "store/signature/tree_update.hpp"

namespace vellum::store {

using format::CommitInfo;
using format::kPageBytes;
using format::MapEntry;
using format::PageKind;
using format::PageNumber;
using format::PartType;
using format::PartView;
using format::Version;

namespace {

// Writing a larger commit straight to the packs costs less than writing it twice.
constexpr std::size_t kMaxJournaledBytes = 256u << 10;

}  // namespace

struct BranchWriter::Commit::Impl {
  BranchWriter::Impl& writer;
  std::mutex mutex;
  std::vector<PageWrites> pieces;
  std::size_t bytes = 0;                   // approximate size of the pieces
  std::vector<MapEntry> written;           // of records that are already in the pack
  std::size_t held_bytes = 0;              // of deltas and zeros in the pieces
  bool early = false;                      // write_deltas_early()
  std::optional<EncodingThreads> threads;  // once blocks are written
  bool finished = false;
  std::string failure;  // of an earlier add() or finish()
  Errc failure_code = Errc::io;
  const IoCost before;  // add() writes too

  explicit Impl(BranchWriter::Impl& w) : writer(w), before(w.io()) {}
  std::size_t journal_limit() const {
    return std::min<std::size_t>(kMaxJournaledBytes, writer.journal->half_bytes() / 4);
  }
  void note_failure(const std::exception& e);
  void check(const PageWrites& piece) const;
  void check(const CommitInfo& info) const;
  void write_blocks();
  void write_held();
  std::vector<PartView> parts() const;
  bool can_join_background(std::size_t payload_bytes, std::uint64_t raw_bytes, bool wait);
  bool append_to_journal(const CommitInfo& info);
};

namespace {

// A commit of this many pages looks its pages up in the store. A page found there makes the commit a
// checkpoint, which would be too slow for a small commit.
constexpr std::size_t kLargeCommitPages = 256;

// Limit of the deltas in memory of a commit that writes them early.
constexpr std::size_t kMaxHeldBytes = std::size_t{8} << 20;

std::size_t held_bytes_of(const PageWrites& piece) {
  return piece.deltas.encoded_bound_bytes() + piece.zeros.size() * sizeof(PageNumber);
}

// Joins entries of adjacent zero pages.
void join_zeros(std::vector<MapEntry>& entries) {
  std::size_t kept = 0;
  for (const MapEntry& e : entries) {
    MapEntry* const last = kept > 0 ? &entries[kept - 1] : nullptr;
    if (last != nullptr && e.kind == PageKind::zero && last->kind == PageKind::zero &&
        last->page + last->count == e.page) {
      last->count += e.count;
    } else {
      entries[kept++] = e;
    }
  }
  entries.resize(kept);
}

std::size_t size_of(const PageWrites& piece) {
  std::size_t bytes = piece.deltas.encoded_bound_bytes() + piece.zeros.size() * 2;
  for (const PageBlock& b : piece.blocks) bytes += b.stored.size() + b.pages.size() * 2;
  return bytes;
}

// Makes `head` the version that the next commit completes.
void advance(Version& head, CommitInfo info) noexcept {
  ++head.sequence;
  head.set_info(std::move(info));
}

std::uint64_t raw_bytes_of(std::span<const PartView> parts) noexcept {
  std::uint64_t bytes = 0;
  for (const PartView& part : parts) bytes += part.raw_bytes;
  return bytes;
}

PageNumber end_of(const PageWrites& piece) {
  PageNumber end = piece.zeros.empty() ? 0 : piece.zeros.back() + 1;
  if (!piece.deltas.empty()) end = std::max(end, piece.deltas.pages().back().page + 1);
  for (const PageBlock& b : piece.blocks) end = std::max(end, b.pages.back() + 1);
  return end;
}

}  // namespace

BranchWriter::Commit::Commit(BranchWriter& writer) : impl_(std::make_unique<Impl>(*writer.impl_)) {}

BranchWriter::Commit::~Commit() {
  impl_->writer.dedup.leave(impl_->finished);
  if (impl_->finished || impl_->writer.packs == nullptr) return;
  impl_->writer.give_up_checkpoint("a commit was abandoned");
}

std::unique_ptr<BranchWriter::Commit> BranchWriter::begin(std::size_t pages) {
  impl_->check_not_poisoned();
  impl_->check_in_place();
  if (impl_->encoding.dedup && pages >= kLargeCommitPages) impl_->dedup.enter(impl_->head);
  return std::unique_ptr<Commit>(new Commit(*this));
}

const Dedup* BranchWriter::Commit::dedup() const noexcept {
  return impl_->writer.dedup.active() ? &impl_->writer.dedup : nullptr;
}

void BranchWriter::Commit::Impl::note_failure(const std::exception& e) {
  failure = e.what();
  const auto* error = dynamic_cast<const Error*>(&e);
  failure_code = error != nullptr ? error->code() : Errc::io;
}

// Refuses data that a reader of the store would refuse.
void BranchWriter::Commit::Impl::check(const PageWrites& piece) const {
  const std::size_t most = format::max_block_bytes(writer.store.superblock()) / kPageBytes;
  for (const PageBlock& b : piece.blocks) {
    const bool whole =
        b.codec != base::Compression::none || b.stored.size() == b.pages.size() * kPageBytes;
    if (b.pages.empty() || b.pages.size() > most || b.stored.empty() || !whole) {
      fail(Errc::invalid_argument, "{}: a block cannot have {} pages in {} bytes", writer.label,
           b.pages.size(), b.stored.size());
    }
  }
}

void BranchWriter::Commit::Impl::check(const CommitInfo& info) const {
  if (info.region_bytes % kPageBytes != 0 || info.region_bytes > format::kMaxRegionBytes ||
      info.region_bytes < writer.head.region_bytes) {
    fail(Errc::invalid_argument, "{}: a region of {} bytes cannot follow one of {}", writer.label,
         info.region_bytes, writer.head.region_bytes);
  }
  if (info.region_bytes > format::kMaxSignedRegionBytes &&
      info.region_bytes > writer.head.region_bytes && has_tree(writer.store, writer.head)) {
    fail(Errc::unsupported,
         "{}: a branch with signed snapshots cannot grow to {} bytes: at most {}", writer.label,
         info.region_bytes, format::kMaxSignedRegionBytes);
  }
  if (info.file_bytes.value_or(0) > info.region_bytes) {
    fail(Errc::invalid_argument, "{}: a file of {} bytes does not fit a region of {}", writer.label,
         *info.file_bytes, info.region_bytes);
  }
  if (info.base_address % kPageBytes != 0 || info.base_address > UINT64_MAX - info.region_bytes) {
    fail(Errc::invalid_argument, "{}: {:#x} cannot be the base address", writer.label,
         info.base_address);
  }
  if (info.message.size() > format::kMaxMessageBytes) {
    fail(Errc::invalid_argument, "{}: a message of {} bytes is too long", writer.label,
         info.message.size());
  }
  const PageNumber pages = info.region_bytes / kPageBytes;
  PageNumber end = 0;
  for (const PageWrites& p : pieces) end = std::max(end, end_of(p));
  for (const MapEntry& e : written) end = std::max(end, e.page + e.count);
  if (end > pages) {
    fail(Errc::invalid_argument, "{}: page {} lies outside the region", writer.label, end - 1);
  }
}

void BranchWriter::Commit::Impl::write_blocks() {
  std::vector<const PageBlock*> blocks;
  for (const PageWrites& piece : pieces) {
    for (const PageBlock& b : piece.blocks) blocks.push_back(&b);
  }
  if (!threads.has_value()) threads.emplace(writer.store.pool(), writer.packs->compressor());
  append_blocks(blocks, *writer.packs, writer.encoding, writer.dedup, *threads, written);
  for (PageWrites& piece : pieces) piece.blocks.clear();
}

// Writes the pieces as records and entries, as finish() would. REQUIRES: write_blocks() was called.
void BranchWriter::Commit::Impl::write_held() {
  assert(threads.has_value() && writer.background == nullptr);
  assert(std::ranges::all_of(pieces, [](const PageWrites& p) { return p.blocks.empty(); }));
  writer.checkpointing = true;
  std::vector<const PageWrites*> all;
  append_pointers(pieces, all);
  auto entries = writer.write_pieces(writer.head, all, {}, nullptr, writer.dedup, *threads);
  join_zeros(entries);
  written.insert(written.end(), entries.begin(), entries.end());
  pieces.clear();
  held_bytes = 0;
}

void BranchWriter::Commit::write_deltas_early() noexcept {
  assert(impl_->writer.epoch.empty());
  impl_->early = true;
}

void BranchWriter::Commit::add(PageWrites&& piece) {
  Impl& c = *impl_;
  const std::lock_guard guard(c.mutex);
  if (!c.failure.empty()) fail(c.failure_code, "{}", c.failure);
  c.check(piece);
  append_found_entries(piece.found, c.written);
  piece.found.clear();
  c.bytes += size_of(piece);
  c.held_bytes += held_bytes_of(piece);
  c.pieces.push_back(std::move(piece));
  // Too large for the journal: blocks are written to the pack now, as by a checkpoint.
  if (c.bytes <= c.journal_limit()) return;
  try {
    c.writer.settle_background();
    c.write_blocks();
    if (c.early && c.held_bytes > kMaxHeldBytes) c.write_held();
  } catch (const std::exception& e) {
    c.note_failure(e);
    c.writer.give_up_checkpoint(e.what());
    throw;
  }
}

// The parts of a commit frame, as views of the pieces. Deltas stay uncompressed: compressing them
// costs more time than it saves.
std::vector<PartView> BranchWriter::Commit::Impl::parts() const {
  std::vector<PartView> out;
  for (const PageWrites& piece : pieces) {
    for (std::size_t first = 0; first < piece.deltas.pages().size();) {
      const auto run = format::deltas_that_fit(piece.deltas, first);
      PartView part{PartType::deltas, base::Compression::none,
                    static_cast<std::uint32_t>(run.encoded_bytes)};
      part.deltas = &piece.deltas;
      part.deltas_at = run;
      out.push_back(part);
      first += run.count;
    }
    if (!piece.zeros.empty()) {
      out.push_back({PartType::zeros, base::Compression::none, 0, piece.zeros});
    }
  }
  for (const PageWrites& piece : pieces) {
    for (const PageBlock& b : piece.blocks) {
      const auto raw_bytes = static_cast<std::uint32_t>(b.pages.size() * kPageBytes);
      out.push_back({PartType::pages, b.codec, raw_bytes, b.pages, b.stored});
    }
  }
  return out;
}

// Whether the base frame that publishes the background checkpoint can have this commit as its last.
// With `wait`, waits for that checkpoint to be written.
bool BranchWriter::Commit::Impl::can_join_background(std::size_t payload_bytes,
                                                     std::uint64_t raw_bytes, bool wait) {
  BranchWriter::Impl& w = writer;
  return w.background_written(wait) && w.can_carry(payload_bytes) &&
         w.epoch_raw_bytes - w.background->raw_bytes + raw_bytes <= w.max_raw_bytes() &&
         w.keep_records();
}

// The small commit, from the encoded pages to the flush that is its commit point, and to the new
// head. False: it is too large for the journal or for the space left, and nothing has happened.
bool BranchWriter::Commit::Impl::append_to_journal(const CommitInfo& info) {
  BranchWriter::Impl& w = writer;

  // 1. Encode the pieces into the payload of a frame. The bytes are copied once, here.
  const std::vector<PartView> views = parts();
  const std::uint64_t raw_bytes = raw_bytes_of(views);
  format::FrameBuffer frame;
  format::encode_commit(info, views, frame.bytes());
  const std::size_t payload_bytes = frame.payload().size();
  if (payload_bytes > journal_limit()) return false;

  // 2. Choose the place: the tail of the journal, or the base frame that publishes the background
  //    checkpoint. A full journal waits for that checkpoint.
  const bool fits =
      w.journal->fits(payload_bytes) && w.epoch_raw_bytes + raw_bytes <= w.max_raw_bytes();
  const bool joins = can_join_background(payload_bytes, raw_bytes, !fits);
  if (!fits && !joins) return false;

  // 3. Allocate for step 5: nothing may fail after the commit point. A commit without pages adds an
  //    empty piece: the epoch is empty only when the journal has no commits.
  CommitInfo done = info;
  std::list<PageWrites> added(std::max<std::size_t>(pieces.size(), 1));
  if (!joins && w.background != nullptr) w.background->commits.emplace_back();

  // 4. Write the frame and flush it. A failed write leaves the head as it is; after a failed flush
  //    the state of the file is unknown, and the branch is poisoned.
  if (joins) {
    w.publish_background(&frame);
  } else {
    try {
      w.journal->write_commit(frame);
      w.journal->sync_commit();  // THE COMMIT POINT
    } catch (const std::exception& e) {
      if (w.background != nullptr) w.background->commits.pop_back();
      if (w.journal->sync_failed()) w.poison = e.what();
      throw;
    }
    if (w.background != nullptr) w.background->commits.back() = std::move(frame);
  }

  // 5. The commit is the head. The epoch keeps its pages for the next checkpoint.
  std::move(pieces.begin(), pieces.end(), added.begin());
  w.epoch.splice(w.epoch.end(), added);
  w.epoch_raw_bytes += raw_bytes;
  advance(w.head, std::move(done));
  return true;
}

CommitCost BranchWriter::Commit::finish(const CommitInfo& info, bool checkpoint,
                                        const CommittedPages* committed) {
  return finish(info, checkpoint, committed, nullptr);
}

CommitCost BranchWriter::Commit::finish_as(const NameLock& snapshot, const CommitInfo& info,
                                           const CommittedPages* committed) {
  return finish(info, true, committed, &snapshot);
}

CommitCost BranchWriter::Commit::finish(const CommitInfo& info, bool checkpoint,
                                        const CommittedPages* committed, const NameLock* snapshot) {
  Impl& c = *impl_;
  const std::lock_guard guard(c.mutex);
  BranchWriter::Impl& w = c.writer;
  w.check_not_poisoned();
  w.check_in_place();
  if (!c.failure.empty()) fail(c.failure_code, "{}", c.failure);
  if (c.finished) fail(Errc::invalid_argument, "{}: the commit is finished already", w.label);
  c.check(info);
  // What the branch does not accept as a snapshot is not committed, either.
  base::Secret key;
  std::optional<NewSnapshot> named;
  if (snapshot != nullptr) {
    key = signing_key_for(w.store, w.name);
    named.emplace(NewSnapshot{*snapshot, key});
  }

  CommitCost cost;
  try {
    cost.checkpointed = checkpoint || !c.written.empty() || !c.append_to_journal(info);
    if (cost.checkpointed) {
      w.settle_background();
      Version next = w.head;
      advance(next, info);
      w.checkpoint(next, c.pieces, std::move(c.written), committed, named ? &*named : nullptr);
    }
  } catch (const std::exception& e) {
    c.note_failure(e);  // the records in packs are dropped, so a second try would lack them
    throw;
  }
  assert(!cost.checkpointed || (w.epoch.empty() && w.background == nullptr));
  c.finished = true;
  w.dedup.leave(true);

  static_cast<IoCost&>(cost) = w.io() - c.before;
  cost.sequence = w.head.sequence;
  w.keep_pace();
  w.begin_background();
  return cost;
}

}  // namespace vellum::store
