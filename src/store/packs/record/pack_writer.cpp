#include "store/packs/record/pack_writer.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "store/packs/encode/encoding_threads.hpp"
#include "store/packs/encode/payload.hpp"
#include "store/packs/io_cost.hpp"
#include "store/packs/pack_scanner.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

using format::IndexLine;
using format::RecordHeader;
using format::RecordRef;
using format::RecordType;
using Clock = std::chrono::steady_clock;

namespace {
constexpr std::size_t kBufferBytes = 1u << 20;
// The limit of pages compared between two checkpoints, so that unmoved content costs no more.
constexpr std::size_t kMaxCompared = SimilarPages::kMaxPages;
// Blocks that are tried together cannot be based on each other.
constexpr std::size_t kTrialsPerThread = 2;
constexpr std::size_t kMaxTrials = 32;
}  // namespace

struct PackWriter::Impl {
  PackStore& store;
  std::uint64_t branch_id;

  // The pack being written. `lines` are its records from `lines_from` on.
  struct Active {
    std::shared_ptr<base::File> file;
    std::uint64_t pack = 0;  // 0: none
    std::uint64_t end = 0;   // offset of the next record, behind the buffered ones
    std::uint64_t lines_from = format::kPackHeaderBytes;
    std::vector<IndexLine> lines;
  };
  Active active;
  std::vector<std::byte> buffer;     // the last bytes before active.end
  std::vector<std::uint64_t> fresh;  // packs created since note_committed()
  bool name_unsynced = false;        // a fresh pack's name is not durable yet
  std::uint64_t next_number;

  // The state as of note_committed(). If the active pack has not changed since, its lines are not
  // copied: they are the first `committed_lines` of the active ones.
  Active committed;
  std::size_t committed_lines = 0;

  std::uint64_t appended = 0;
  bool dirty = false;
  bool sync_failed = false;
  IoCost io;
  base::Compressor compressor;

  // Candidates for base pages, in the active pack.
  SimilarPages similar;
  std::size_t compared = 0;             // pages since note_committed()
  std::vector<RecordRef> bases;         // records of base pages, since note_committed()
  std::vector<std::size_t> candidates;  // the blocks to try, by their number in the batch
  std::vector<BasedBlock> trials;       // of the candidates, in order

  Impl(PackStore& s, std::uint64_t id, const format::Version& version);
  void open_active(const format::Version& version);
  void write_out();
  void sync_file();
  void seal();
  void roll();
  RecordRef append(const NewRecord& record, bool may_roll);
  RecordRef put(const NewRecord& record);
  std::vector<IndexLine> all_lines();
  bool is_full() const noexcept { return active.end >= store.superblock().pack_bytes; }
  bool is_whole(const RecordRef& ref) const;
  bool is_candidate(const BlockView& block) noexcept;
  void try_deltas(std::span<const BlockView> blocks, EncodingThreads& threads);
  RecordRef append_plain(const BlockView& block);
  RecordRef append_tried(const BlockView& block, const BasedBlock& trial,
                         const std::function<bool()>& allow_based);
  bool pin_bases(std::span<const format::BasePage> pages);
  void note_committed_position() noexcept;
};

PackWriter::Impl::Impl(PackStore& s, std::uint64_t id, const format::Version& version)
    : store(s), branch_id(id), next_number(version.next_pack_number) {
  if (version.active_pack != 0) open_active(version);
  committed = active;
}

void PackWriter::Impl::open_active(const format::Version& version) {
  const std::string path = store.packs().places().home_path(version.active_pack);
  // Only packs of this branch may be written, whatever the journal says.
  if (version.active_pack >> 32 != branch_id) {
    fail(Errc::corrupted, "{}: the active pack belongs to another branch", path);
  }
  store.packs().open(version.active_pack);  // checks the header
  active.file = store.fs().open(path, base::OpenMode::read_write);
  std::array<std::byte, format::kPackHeaderBytes> bytes;
  active.file->pread(bytes, 0);
  format::PackHeader header;
  if (!format::decode_pack_header(bytes, header) || header.translation_offset_bytes != 0) {
    fail(Errc::corrupted, "{}: the active pack was rewritten, and accepts no more records", path);
  }
  const std::uint64_t size = active.file->size_bytes();
  if (size < version.active_pack_end_bytes) {
    fail(Errc::corrupted, "{}: truncated: {} bytes, the branch counts on {}", path, size,
         version.active_pack_end_bytes);
  }
  // Removes the tail of a crashed checkpoint: a trailer in it could later pass for this pack's.
  if (size > version.active_pack_end_bytes) active.file->truncate(version.active_pack_end_bytes);
  active.pack = version.active_pack;
  active.end = active.lines_from = version.active_pack_end_bytes;
}

void PackWriter::Impl::write_out() {
  if (buffer.empty()) return;
  assert(active.file != nullptr && active.end >= buffer.size());
  const auto start = Clock::now();
  active.file->pwrite(buffer, active.end - buffer.size());
  if (buffer.size() >= kBufferBytes) {
    active.file->begin_flush(active.end - buffer.size(), buffer.size());
  }
  io.write_ns += base::elapsed_ns(start);
  io.bytes_written += buffer.size();
  buffer.clear();
}

void PackWriter::Impl::sync_file() {
  assert(active.file != nullptr && buffer.empty());
  const auto start = Clock::now();
  try {
    active.file->sync_data();
    ++io.flushes;
    if (name_unsynced) {
      store.fs().sync_directory(store.packs_directory());
      ++io.flushes;
    }
    name_unsynced = false;
  } catch (...) {
    sync_failed = true;
    throw;
  }
  io.flush_ns += base::elapsed_ns(start);
}

namespace {

IndexLine written_line(const RecordHeader& h) {
  return {h.type, h.offset_bytes, h.stored_bytes, h.raw_bytes, h.items, h.tag()};
}

}  // namespace

// An earlier writer wrote the records before `lines_from`; their headers describe them. Where gc
// freed records, there is a hole, with remains of records around it. The index of an encrypted store
// is sealed: only records that open are listed.
std::vector<IndexLine> PackWriter::Impl::all_lines() {
  std::vector<IndexLine> out;
  if (store.is_encrypted()) {
    PackScanner scanner(*active.file, active.pack, store.record_seal(), format::kPackHeaderBytes,
                        active.lines_from);
    for (RecordHeader h; scanner.next(h);) out.push_back(written_line(h));
    out.insert(out.end(), active.lines.begin(), active.lines.end());
    return out;
  }
  std::array<std::byte, format::kRecordHeaderBytes> bytes;
  for (std::uint64_t at = format::kPackHeaderBytes; at < active.lines_from;) {
    RecordHeader h;
    active.file->pread(bytes, at);
    if (format::decode_record_header(bytes, h) != nullptr || h.pack != active.pack ||
        h.offset_bytes != at) {
      PackScanner scanner(*active.file, active.pack, store.checksum_seed(), at, active.lines_from);
      if (!scanner.next(h)) break;
    }
    out.push_back(written_line(h));
    at = h.offset_bytes + format::record_extent_bytes(h);
  }
  out.insert(out.end(), active.lines.begin(), active.lines.end());
  return out;
}

// Ends the active pack with index and trailer.
void PackWriter::Impl::seal() {
  assert(active.pack != 0);
  const std::vector<IndexLine> lines = all_lines();
  const std::uint64_t at = active.end;
  auto raw = format::encode_index(lines);
  if (raw.size() <= format::kMaxRecordRawBytes) {
    const auto items = static_cast<std::uint32_t>(lines.size());
    const auto payload =
        encode_payload(compressor, base::Compression::zstd, kMetadataZstdLevel, std::move(raw));
    put({RecordType::index, payload.codec, payload.raw_bytes, payload.stored, items});
    const auto trailer = format::encode_pack_trailer(active.pack, at, store.checksum_seed());
    buffer.insert(buffer.end(), trailer.begin(), trailer.end());
    active.end += trailer.size();
    appended += trailer.size();
  }
  write_out();
  // A longer tail of an abandoned append must not hide the trailer.
  active.file->truncate(active.end);
  sync_file();
}

void PackWriter::Impl::roll() {
  if (active.pack != 0) seal();
  assert(buffer.empty());
  Active next;
  for (bool leave_out = false; next.file == nullptr; ++next_number) {
    if (next_number > UINT32_MAX) {
      fail(Errc::no_space, "{}: all pack numbers are used up", store.path());
    }
    next.pack = branch_id << 32 | next_number;
    // A crash after a roll left this file, and nothing refers to it. The next number is skipped: a
    // direct successor would mean that this file was flushed (Roots::reached_bytes).
    if (store.fs().exists(store.packs().places().home_path(next.pack))) {
      leave_out = true;
    } else if (leave_out) {
      leave_out = false;
    } else {
      next.file =
          store.fs().open(store.packs().places().home_path(next.pack), base::OpenMode::create_new);
    }
  }
  fresh.push_back(next.pack);
  name_unsynced = true;
  buffer = format::encode_pack_header(
      {store.superblock().store_id, next.pack, branch_id, 0, 0, store.is_encrypted()});
  next.end = buffer.size();
  appended += buffer.size();
  if (active.pack == committed.pack) committed.lines = std::move(active.lines);
  similar.clear();
  active = std::move(next);
}

RecordRef PackWriter::Impl::put(const NewRecord& record) {
  assert(active.file != nullptr && active.pack >> 32 == branch_id);
  assert(record.stored.size() <= UINT32_MAX);
  assert(record.hash.empty() || record.hash.size() == format::kHashBytes);
  RecordHeader h;
  h.type = record.type;
  h.codec = record.codec;
  h.pack = active.pack;
  h.offset_bytes = active.end;
  h.raw_bytes = record.raw_bytes;
  h.stored_bytes = static_cast<std::uint32_t>(record.stored.size());
  h.items = record.items;
  const std::size_t before = buffer.size();
  format::append_record(buffer, h, record.hash, record.stored, store.record_seal());
  active.end += buffer.size() - before;
  appended += buffer.size() - before;
  dirty = true;
  if (h.type != RecordType::index) {
    active.lines.push_back(written_line(h));
  }
  return {h.pack, h.offset_bytes, h.tag()};
}

void PackWriter::Impl::note_committed_position() noexcept {
  committed.file = active.file;
  committed.pack = active.pack;
  committed.end = active.end;
  committed.lines_from = active.lines_from;
  committed.lines.clear();
  committed_lines = active.lines.size();
  dirty = false;
  compared = 0;
  bases.clear();
}

// Whether the pack still has the record. gc may have freed it since it was appended.
bool PackWriter::Impl::is_whole(const RecordRef& ref) const {
  assert(active.end >= buffer.size());
  const bool is_active = ref.pack == active.pack;  // roll() may have sealed the pack of `ref`
  if (is_active && ref.offset_bytes >= active.end - buffer.size()) return true;
  try {
    const auto sealed = is_active ? nullptr : store.packs().places().open(ref.pack);
    const base::File& file = is_active ? *active.file : *sealed;
    std::array<std::byte, format::kRecordHeaderBytes> head;
    file.pread(head, ref.offset_bytes);
    RecordHeader h;
    if (format::decode_record_header(head, h) != nullptr) return false;
    std::vector<std::byte> bytes(static_cast<std::size_t>(format::record_extent_bytes(h)));
    file.pread(bytes, ref.offset_bytes);
    if (format::check_sealed(h, store.record_seal()) != nullptr) return false;
    return format::open_record(bytes, h, ref, store.record_seal()) == nullptr;
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    return false;
  }
}

// Adds the records of these base pages to `bases`. False: the pack lacks one of them.
bool PackWriter::Impl::pin_bases(std::span<const format::BasePage> pages) {
  assert(!pages.empty());
  const std::size_t before = bases.size();
  for (const format::BasePage& page : pages) {
    const RecordRef ref{active.pack, page.offset_bytes, page.tag};
    if (std::ranges::find(bases, ref) != bases.end()) continue;
    bases.push_back(ref);
    if (is_whole(ref)) continue;
    bases.resize(before);
    return false;
  }
  return true;
}

bool PackWriter::Impl::is_candidate(const BlockView& block) noexcept {
  compared += block.pages();
  return compared <= kMaxCompared && similar.is_next_due();
}

// Encodes the candidates with base pages.
void PackWriter::Impl::try_deltas(std::span<const BlockView> blocks, EncodingThreads& threads) {
  assert(candidates.size() <= blocks.size());
  if (trials.size() < candidates.size()) trials.resize(candidates.size());
  const std::size_t max_block_bytes = format::max_block_bytes(store.superblock());
  threads.run(candidates.size(), [&](std::size_t i, base::Compressor& own) {
    if (!trials[i].try_bases(blocks[candidates[i]], similar, own, max_block_bytes)) {
      fail(Errc::corrupted, "{}: a block that is to be stored does not decompress", store.path());
    }
  });
}

RecordRef PackWriter::Impl::append_plain(const BlockView& block) {
  return append(
      {RecordType::pages, block.codec, block.raw_bytes, block.stored, block.pages(), block.hash},
      true);
}

// The pack may have become full since the trial: the base pages are then in another pack.
RecordRef PackWriter::Impl::append_tried(const BlockView& block, const BasedBlock& trial,
                                         const std::function<bool()>& allow_based) {
  if (!trial.payload().empty() && trial.pack() == active.pack && !is_full() && allow_based() &&
      pin_bases(trial.pages())) {
    similar.note_use();
    return append({RecordType::based_pages, base::Compression::zstd, block.raw_bytes,
                   trial.payload(), block.pages(), block.hash},
                  false);
  }
  const RecordRef ref = append_plain(block);
  similar.note(ref, trial.raw(), trial.sketch());
  return ref;
}

PackWriter::PackWriter(PackStore& store, std::uint64_t branch_id, const format::Version& version)
    : impl_(std::make_unique<Impl>(store, branch_id, version)) {}

PackWriter::~PackWriter() = default;

RecordRef PackWriter::Impl::append(const NewRecord& record, bool may_roll) {
  if (active.pack == 0 || (is_full() && may_roll)) roll();
  const RecordRef ref = put(record);
  if (buffer.size() >= kBufferBytes) write_out();
  return ref;
}

RecordRef PackWriter::append(const NewRecord& record, bool may_roll) {
  return impl_->append(record, may_roll);
}

std::vector<RecordRef> PackWriter::append_pages(std::span<const BlockView> blocks,
                                                const std::function<bool()>& allow_based,
                                                EncodingThreads& threads) {
  Impl& w = *impl_;
  const std::size_t at_once = std::min(kTrialsPerThread * threads.count(), kMaxTrials);
  std::vector<RecordRef> out;
  out.reserve(blocks.size());
  while (!blocks.empty()) {
    const auto some = blocks.first(std::min(blocks.size(), at_once));
    blocks = blocks.subspan(some.size());
    w.candidates.clear();
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (allow_based && w.is_candidate(some[i])) w.candidates.push_back(i);
    }
    w.try_deltas(some, threads);
    for (std::size_t i = 0, trial = 0; i < some.size(); ++i) {
      const bool is_tried = trial < w.candidates.size() && w.candidates[trial] == i;
      out.push_back(is_tried ? w.append_tried(some[i], w.trials[trial++], allow_based)
                             : w.append_plain(some[i]));
    }
  }
  return out;
}

bool PackWriter::has_bases() const noexcept { return !impl_->bases.empty(); }

bool PackWriter::bases_whole() const {
  return std::ranges::all_of(impl_->bases, [&](const RecordRef& r) { return impl_->is_whole(r); });
}

// Frees the buffers of the commit: thousands of branches may be open, most of them idle.
void PackWriter::sync() {
  impl_->write_out();
  impl_->buffer = {};
  impl_->trials = std::vector<BasedBlock>();
  impl_->sync_file();
}

void PackWriter::abandon() noexcept {
  Impl& w = *impl_;
  if (!w.dirty && w.fresh.empty()) return;
  w.buffer.clear();
  if (w.active.pack != w.committed.pack) w.active = std::move(w.committed);
  w.active.end = w.committed.end;
  assert(w.active.lines.size() >= w.committed_lines);
  w.active.lines.resize(w.committed_lines);
  try {
    if (w.active.file != nullptr) w.active.file->truncate(w.active.end);
  } catch (...) {
    // It only takes space: the next append overwrites it.
  }
  for (const std::uint64_t pack : w.fresh) {
    try {
      w.store.fs().unlink(w.store.packs().places().home_path(pack));
    } catch (...) {
      // Nothing refers to it, and it only takes space. Its number has no direct successor; see
      // roll().
      w.next_number = std::max(w.next_number, (pack & UINT32_MAX) + 2);
    }
  }
  w.fresh.clear();
  w.name_unsynced = false;
  w.similar.clear();
  w.note_committed_position();
}

void PackWriter::note_committed() noexcept {
  assert(impl_->buffer.empty());
  impl_->fresh.clear();
  impl_->note_committed_position();
}

std::uint64_t PackWriter::active_pack() const noexcept { return impl_->active.pack; }
std::uint64_t PackWriter::end_bytes() const noexcept { return impl_->active.end; }
std::uint64_t PackWriter::next_pack_number() const noexcept { return impl_->next_number; }
std::uint64_t PackWriter::bytes_appended() const noexcept { return impl_->appended; }
bool PackWriter::dirty() const noexcept { return impl_->dirty; }
base::Compressor& PackWriter::compressor() noexcept { return impl_->compressor; }
const IoCost& PackWriter::io() const noexcept { return impl_->io; }
bool PackWriter::sync_failed() const noexcept { return impl_->sync_failed; }

}  // namespace vellum::store
