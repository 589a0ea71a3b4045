// A commit: its pieces go to the journal, or through a checkpoint into packs.
#include <mutex>
#include <optional>

#include "base/fail.hpp"
#include "store/branch/branch_writer_impl.hpp"
#include "store/branch/checkpoint/checkpoint.hpp"
#include "store/packs/io_cost.hpp"
#include "store/page_map/overlay.hpp"

namespace vellum::store {

using format::CommitBody;
using format::kPageBytes;
using format::MapEntry;
using format::PageKind;
using format::PageNumber;
using format::PartType;
using format::Version;

namespace {

// A larger commit costs less when it goes to the packs at once than when it is written twice.
constexpr std::size_t kMaxJournaledBytes = 256u << 10;

}  // namespace

struct BranchWriter::Commit::Impl {
  BranchWriter::Impl& writer;
  std::mutex mutex;
  std::vector<PageWrites> pieces;
  std::size_t bytes = 0;          // approximate size of the pieces
  std::vector<MapEntry> written;  // of blocks that are already in the pack
  std::size_t held_bytes = 0;     // of deltas and zeros in the pieces, while `early` is set
  bool early = false;             // write_deltas_early()
  std::optional<EncodingThreads> threads;  // made when blocks are written
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
  void check(const CommitMeta& meta) const;
  void write_blocks();
  void write_held();
  std::vector<std::byte> encode(const CommitMeta& meta, std::uint64_t& raw_bytes);
  bool append_to_journal(const CommitMeta& meta);
};

namespace {

// A commit of this many pages looks for pages that the store already has. A page that is found
// makes the commit a checkpoint, which a small commit should not become.
constexpr std::size_t kLargeCommitPages = 256;

// Deltas of a commit that writes them early: the most in memory.
constexpr std::size_t kMaxHeldBytes = std::size_t{8} << 20;

std::size_t held_bytes_of(const PageWrites& piece) {
  return piece.deltas.encoded_bound_bytes() + piece.zeros.size() * sizeof(PageNumber);
}

// Makes one entry of zero pages side by side.
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

// Makes `head` the version of the commit that follows it.
void follow(Version& head, CommitMeta meta) noexcept {
  ++head.sequence;
  head.time_ns = meta.time_ns;
  head.region_bytes = meta.region_bytes;
  head.base_address = meta.base_address;
  head.message = std::move(meta.message);
  head.file_bytes = meta.file_bytes;
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
  impl_->writer.give_up_checkpoint("a commit was given up");
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

// Data that a reader would refuse must not get into the store.
void BranchWriter::Commit::Impl::check(const PageWrites& piece) const {
  const std::size_t most = format::max_block_bytes(writer.store.superblock()) / kPageBytes;
  for (const PageBlock& b : piece.blocks) {
    const bool whole =
        b.codec != base::Codec::none || b.stored.size() == b.pages.size() * kPageBytes;
    if (b.pages.empty() || b.pages.size() > most || b.stored.empty() || !whole) {
      fail(Errc::invalid_argument, "{}: a block cannot have {} pages in {} bytes", writer.label,
           b.pages.size(), b.stored.size());
    }
  }
}

void BranchWriter::Commit::Impl::check(const CommitMeta& meta) const {
  if (meta.region_bytes % kPageBytes != 0 || meta.region_bytes > format::kMaxRegionBytes ||
      meta.region_bytes < writer.head.region_bytes) {
    fail(Errc::invalid_argument, "{}: a region of {} bytes cannot follow one of {}", writer.label,
         meta.region_bytes, writer.head.region_bytes);
  }
  if (meta.file_bytes.value_or(0) > meta.region_bytes) {
    fail(Errc::invalid_argument, "{}: a file of {} bytes does not fit a region of {}", writer.label,
         *meta.file_bytes, meta.region_bytes);
  }
  if (meta.base_address % kPageBytes != 0 || meta.base_address > UINT64_MAX - meta.region_bytes) {
    fail(Errc::invalid_argument, "{}: {:#x} cannot be the base address", writer.label,
         meta.base_address);
  }
  if (meta.message.size() > format::kMaxMessageBytes) {
    fail(Errc::invalid_argument, "{}: a message of {} bytes is too long", writer.label,
         meta.message.size());
  }
  const PageNumber pages = meta.region_bytes / kPageBytes;
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

// The pieces become records and entries, as they would at the end. REQUIRES: write_blocks() was called.
void BranchWriter::Commit::Impl::write_held() {
  writer.checkpointing = true;
  std::vector<const PageWrites*> all;
  append_pointers(pieces, all);
  auto entries = writer.write_pieces(writer.head, all, {}, nullptr, writer.dedup, *threads);
  join_zeros(entries);
  written.insert(written.end(), entries.begin(), entries.end());
  pieces.clear();
  held_bytes = 0;
}

void BranchWriter::Commit::write_deltas_early() noexcept { impl_->early = true; }

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
  // Too large for the journal: blocks go where a checkpoint would put them.
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

// The payload of a commit frame. Deltas stay uncompressed: compressing them costs more time than it
// saves.
std::vector<std::byte> BranchWriter::Commit::Impl::encode(const CommitMeta& meta,
                                                          std::uint64_t& raw_bytes_of_all) {
  CommitBody body{meta.time_ns, meta.region_bytes, meta.base_address, meta.message,
                  {},           meta.file_bytes};
  std::size_t blocks = 0;
  for (PageWrites& piece : pieces) {
    for (std::size_t first = 0; first < piece.deltas.pages().size();) {
      const std::size_t count = deltas_that_fit(piece.deltas, first);
      auto raw = format::encode_delta_batch(piece.deltas, first, count);
      const auto raw_bytes = static_cast<std::uint32_t>(raw.size());
      body.parts.push_back({PartType::deltas, base::Codec::none, raw_bytes, {}, std::move(raw)});
      first += count;
    }
    if (!piece.zeros.empty()) {
      body.parts.push_back({PartType::zeros, base::Codec::none, 0, piece.zeros, {}});
    }
    blocks += piece.blocks.size();
  }
  // The body borrows the blocks and gives them back.
  const std::size_t first_block = body.parts.size();
  body.parts.reserve(first_block + blocks);
  for (PageWrites& piece : pieces) {
    for (PageBlock& b : piece.blocks) {
      const auto raw_bytes = static_cast<std::uint32_t>(b.pages.size() * kPageBytes);
      body.parts.push_back(
          {PartType::pages, b.codec, raw_bytes, std::move(b.pages), std::move(b.stored)});
    }
  }
  auto payload = format::encode_commit(body);
  raw_bytes_of_all = raw_bytes_of(body);
  std::size_t part = first_block;
  for (PageWrites& piece : pieces) {
    for (PageBlock& b : piece.blocks) {
      b.pages = std::move(body.parts[part].pages);
      b.stored = std::move(body.parts[part++].stored);
    }
  }
  return payload;
}

// False: the commit is too large for the journal or for the space left in it.
bool BranchWriter::Commit::Impl::append_to_journal(const CommitMeta& meta) {
  BranchWriter::Impl& w = writer;
  std::uint64_t raw_bytes = 0;
  auto payload = encode(meta, raw_bytes);
  if (payload.size() > journal_limit()) return false;
  const std::uint64_t most = max_epoch_raw_bytes(w.store.superblock().journal_half_bytes);
  const auto joins_background = [&](bool wait) {
    return w.background_written(wait) && w.can_carry(payload.size()) &&
           w.epoch_raw_bytes - w.background->raw_bytes + raw_bytes <= most && w.keep_bases();
  };
  const bool fits = w.journal->fits(payload.size()) && w.epoch_raw_bytes + raw_bytes <= most;
  const bool joins = joins_background(!fits);
  if (!fits && !joins) return false;

  // Nothing may fail after the commit point.
  CommitMeta made = meta;
  std::list<PageWrites> added(pieces.size());
  if (joins) {
    w.publish_background(std::move(payload));
  } else {
    w.append_commit(std::move(payload));
  }
  std::move(pieces.begin(), pieces.end(), added.begin());
  w.epoch.splice(w.epoch.end(), added);
  w.epoch_raw_bytes += raw_bytes;
  follow(w.head, std::move(made));
  return true;
}

// Appends a commit frame: the commit point. A background's epoch will carry the commit.
void BranchWriter::Impl::append_commit(std::vector<std::byte> payload) {
  if (background != nullptr) background->commits.emplace_back();  // room: nothing may fail later
  try {
    journal->append_commit(payload);
  } catch (const std::exception& e) {
    if (background != nullptr) background->commits.pop_back();
    if (journal->sync_failed()) poison = e.what();
    throw;
  }
  if (background != nullptr) background->commits.back() = std::move(payload);
}

CommitCost BranchWriter::Commit::finish(const CommitMeta& meta, bool checkpoint,
                                        const CommittedPages* committed) {
  return finish(meta, checkpoint, committed, nullptr);
}

CommitCost BranchWriter::Commit::finish_as(const NameLock& snapshot, const CommitMeta& meta,
                                           const CommittedPages* committed) {
  return finish(meta, true, committed, &snapshot);
}

CommitCost BranchWriter::Commit::finish(const CommitMeta& meta, bool checkpoint,
                                        const CommittedPages* committed, const NameLock* snapshot) {
  Impl& c = *impl_;
  const std::lock_guard guard(c.mutex);
  BranchWriter::Impl& w = c.writer;
  w.check_not_poisoned();
  w.check_in_place();
  if (!c.failure.empty()) fail(c.failure_code, "{}", c.failure);
  if (c.finished) fail(Errc::invalid_argument, "{}: the commit is finished already", w.label);
  c.check(meta);

  CommitCost cost;
  try {
    cost.checkpointed = checkpoint || !c.written.empty() || !c.append_to_journal(meta);
    if (cost.checkpointed) {
      w.settle_background();
      Version next = w.head;
      follow(next, meta);
      w.checkpoint(next, c.pieces, std::move(c.written), committed, snapshot);
    }
  } catch (const std::exception& e) {
    c.note_failure(e);  // the records in packs are dropped: a second try would lack them
    throw;
  }
  c.finished = true;
  w.dedup.leave(true);

  const IoCost after = w.io();
  cost.sequence = w.head.sequence;
  cost.bytes_written = after.bytes_written - c.before.bytes_written;
  cost.flushes = after.flushes - c.before.flushes;
  cost.write_ns = after.write_ns - c.before.write_ns;
  cost.flush_ns = after.flush_ns - c.before.flush_ns;
  w.keep_pace();
  w.begin_background();
  return cost;
}

}  // namespace vellum::store
