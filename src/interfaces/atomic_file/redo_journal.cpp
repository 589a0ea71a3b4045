#include "interfaces/atomic_file/redo_journal.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/round_up.hpp"
#include "format/wire/number.hpp"
#include "format/wire/types.hpp"

namespace vellum::atomic_file {

using format::kRedoLogBegin;
using format::RedoHeader;
using format::RedoRecord;
using format::RedoSpan;

namespace {

// An extension flushes metadata, so it reserves space for many commits.
constexpr std::uint64_t kExtendBytes = 1 << 20;

// Keeps the parts of earlier commits that are inside a file cut to `file_bytes`.
void cut(std::vector<FilePiece>& pieces, std::uint64_t file_bytes) {
  std::erase_if(pieces, [&](const FilePiece& piece) { return piece.offset_bytes >= file_bytes; });
  for (FilePiece& piece : pieces)
    piece.bytes = piece.bytes.first(
        std::min<std::uint64_t>(piece.bytes.size(), file_bytes - piece.offset_bytes));
}

void append_pieces(const RedoRecord& record, std::vector<FilePiece>& pieces) {
  for (const RedoSpan& span : record.spans) {
    const std::uint64_t offset = span.first_line * format::kLineBytes;
    if (offset >= record.file_bytes) continue;
    const std::uint64_t bytes =
        std::min<std::uint64_t>(span.count * format::kLineBytes, record.file_bytes - offset);
    pieces.push_back({offset, {span.bytes, bytes}});
  }
}

// The unit that a failing medium or file system loses.
constexpr std::uint64_t kBlockBytes = 4096;

// The largest number of a record of the epoch at or after the start of `log`, with `commits` before
// it; 0: there is none.
std::uint64_t newest_in(const RedoHeader& header, std::span<const std::byte> log,
                        std::uint64_t commits) {
  std::uint64_t newest = 0;
  const std::uint64_t most = log.size() / format::kLineBytes;  // a record has at least a line
  RedoRecord record;
  for (; log.size() >= format::kRedoRecordHeaderBytes; log = log.subspan(format::kLineBytes)) {
    const std::uint64_t sequence = format::redo_sequence(log);
    if (sequence > newest && sequence <= most + commits &&
        format::decode_redo_record(header, sequence, log, record) != 0)
      newest = sequence;
  }
  return newest;
}

std::uint64_t header_place(std::uint64_t epoch) { return epoch % 2 * format::kRedoHeaderCopyBytes; }

constexpr std::uint64_t kSpanPages = 64;

std::uint64_t page_of(const FilePiece& piece) { return piece.offset_bytes / format::kPageBytes; }

// Handles neighbouring pages together: read, patch in the order of the commits, write.
void apply_span(std::span<const FilePiece> pieces, MediumFile& image,
                std::vector<std::byte>& buffer) {
  const std::uint64_t begin = page_of(pieces.front()) * format::kPageBytes;
  const std::uint64_t end =
      std::min(image.size_bytes(), (page_of(pieces.back()) + 1) * format::kPageBytes);
  buffer.resize(end - begin);
  image.read(buffer, begin);
  for (const FilePiece& piece : pieces) {
    assert(piece.offset_bytes >= begin && piece.offset_bytes + piece.bytes.size() <= end);
    std::memcpy(buffer.data() + (piece.offset_bytes - begin), piece.bytes.data(),
                piece.bytes.size());
  }
  image.write(buffer, begin);
}

// Writes the pieces to the file, later ones over earlier ones, without a barrier. Sorts `pieces`.
// REQUIRES: their bytes lie in one log, in the order of the commits, and within the file.
void apply_pieces(std::vector<FilePiece>& pieces, MediumFile& image) {
  if (image.byte_addressable()) {
    for (const FilePiece& piece : pieces) image.write(piece.bytes, piece.offset_bytes);
    return;
  }
  std::sort(pieces.begin(), pieces.end(), [](const FilePiece& a, const FilePiece& b) {
    return page_of(a) != page_of(b) ? page_of(a) < page_of(b) : a.bytes.data() < b.bytes.data();
  });
  std::vector<std::byte> buffer;
  for (std::size_t first = 0; first < pieces.size();) {
    std::size_t last = first;
    while (last + 1 < pieces.size() && page_of(pieces[last + 1]) <= page_of(pieces[last]) + 1 &&
           page_of(pieces[last + 1]) < page_of(pieces[first]) + kSpanPages)
      ++last;
    apply_span(std::span(pieces).subspan(first, last - first + 1), image, buffer);
    first = last + 1;
  }
}

}  // namespace

RedoJournal RedoJournal::create(std::unique_ptr<MediumFile> medium, const RedoHeader& header,
                                std::uint64_t log_bytes) {
  RedoJournal journal(std::move(medium));
  if (journal.medium_->size_bytes() < kRedoLogBegin + log_bytes)
    journal.medium_->resize(kRedoLogBegin + log_bytes);
  // Both copies; the second one counts. When make_room() tears it, the other copy and the records
  // have the same facts.
  RedoHeader first = header;
  first.least_bytes = journal.medium_->size_bytes();
  journal.medium_->write(format::encode_redo_header(first), header_place(first.epoch));
  ++first.epoch;
  journal.write_header(first);
  assert(journal.empty());
  return journal;
}

RedoJournal RedoJournal::open(std::unique_ptr<MediumFile> medium, Damage damage) {
  RedoJournal journal(std::move(medium));
  journal.on_damage_ = damage;
  const char* why = "it is too short";
  bool found = false;
  for (std::uint64_t copy = 0; copy < 2; ++copy) {
    const std::uint64_t at = copy * format::kRedoHeaderCopyBytes;
    if (journal.medium_->size_bytes() < kRedoLogBegin) break;
    std::array<std::byte, format::kRedoHeaderBytes> bytes;
    journal.medium_->read(bytes, at);
    RedoHeader header;
    const char* wrong = format::decode_redo_header(bytes, header);
    // Not damage: a repair must not lose the content of a newer Vellum's journal.
    if (format::redo_header_is_newer(bytes)) {
      fail(Errc::newer_format, "{}: format {}, written by a newer Vellum; this one reads up to {}",
           journal.medium_->path(), format::number_text(format::number_of(bytes)),
           format::number_text(format::kNewestFormatVersion));
    }
    if (wrong == nullptr && header_place(header.epoch) != at)
      wrong = "a header is in the other's place";
    if (wrong != nullptr) {
      if (!found) why = wrong;
    } else if (!found || header.epoch > journal.header_.epoch) {
      journal.header_ = header;
      found = true;
    }
  }
  journal.recovering_ = true;
  if (!found) {
    journal.note_damage(std::string(": is not the journal of a file: ") + why);
    return journal;
  }
  const std::uint64_t bytes = journal.medium_->size_bytes();
  if (bytes < journal.header_.least_bytes)
    journal.note_damage(": was cut: it has " + std::to_string(bytes) + " bytes of " +
                        std::to_string(journal.header_.least_bytes));
  journal.take_header_of_records();
  return journal;
}

void RedoJournal::note_damage(const std::string& what) {
  const std::string text = medium_->path() + what;
  if (on_damage_ == Damage::refuse)
    fail(Errc::corrupted,
         "{}. `vellum recover --corrupted` applies the commits before the damage to the file, and "
         "keeps "
         "the journal under another name",
         text);
  if (damage_.empty()) damage_ = text;
}

// A header is durable before the first record of its epoch. So a record of the next epoch shows
// that the next header was corrupted; its content follows from the previous one.
void RedoJournal::take_header_of_records() {
  RedoHeader next = header_;
  ++next.epoch;
  if (newest_in(next, read_log(), 0) != 0) header_ = next;
}

// Scans the rest of the medium for durable records after the end of the log. Only after a crash.
// REQUIRES: the log ends after `replay`.
void RedoJournal::look_for_later(std::span<const std::byte> log, Replay& replay) {
  assert(replay.log_bytes <= log.size());
  const std::uint64_t newest = newest_in(header_, log.subspan(replay.log_bytes), replay.commits);
  if (newest <= replay.commits) return;
  replay.commits_lost = newest - replay.commits;
  note_damage(" at byte " + std::to_string(kRedoLogBegin + replay.log_bytes) + ": commit " +
              std::to_string(replay.commits + 1) + " of the journal is corrupted, " +
              std::to_string(newest) + " were durable");
}

// The header decides whether records count. If it may or may not be written, there are no more
// commits.
void RedoJournal::write_header(const RedoHeader& header) {
  try {
    medium_->write(format::encode_redo_header(header), header_place(header.epoch));
  } catch (const Error& error) {
    poison_ = error.what();
    throw;
  }
  barrier(*medium_);
  header_ = header;
}

void RedoJournal::barrier(MediumFile& medium) {
  try {
    medium.barrier();
  } catch (const Error& error) {
    poison_ = error.what();
    fail(Errc::poisoned, "{}: the last commit may or may not be durable; open the file again",
         poison_);
  }
}

std::vector<std::byte> RedoJournal::read_log() const {
  std::vector<std::byte> log;
  if (log_end() <= kRedoLogBegin) return log;  // it was cut
  log.resize(log_end() - kRedoLogBegin);
  medium_->read(log, kRedoLogBegin);
  return log;
}

// The consecutive records from the start of `log` on.
RedoJournal::FoundRecords RedoJournal::find_records(std::span<const std::byte> log) const {
  FoundRecords found;
  Replay& replay = found.replay;
  for (RedoRecord record; replay.log_bytes < log.size();) {
    const std::size_t bytes = format::decode_redo_record(header_, replay.commits + 1,
                                                         log.subspan(replay.log_bytes), record);
    if (bytes == 0) break;
    ++replay.commits;
    replay.log_bytes += bytes;
    for (const RedoSpan& span : record.spans) replay.bytes += span.count * format::kLineBytes;
    if (record.file_bytes < found.file_bytes) cut(found.pieces, record.file_bytes);
    append_pieces(record, found.pieces);
    found.file_bytes = record.file_bytes;
    found.smallest_bytes = std::min(found.smallest_bytes, found.file_bytes);
  }
  return found;
}

// After a crash the file may be too long or too short. While it is mapped it has been cut already
// and must not be cut again: that would remove the program's pages.
void RedoJournal::bring(FoundRecords& found, MediumFile& image, bool after_crash) {
  if (after_crash) {
    if (image.size_bytes() > found.smallest_bytes) image.resize(found.smallest_bytes);
    if (image.size_bytes() < found.file_bytes) image.resize(found.file_bytes);
  }
  apply_pieces(found.pieces, image);
  barrier(image);
}

Replay RedoJournal::checkpoint(MediumFile& image) {
  if (!poison_.empty()) fail(Errc::poisoned, "{}", poison_);
  std::vector<std::byte> copy;
  std::span<const std::byte> log = medium_->mapped();
  if (log.empty()) {
    copy = read_log();
    log = copy;
  } else {
    const std::uint64_t begin = std::min(kRedoLogBegin, log_end());  // it may have been cut
    log = log.subspan(begin, log_end() - begin);
  }
  FoundRecords found = find_records(log);
  Replay& replay = found.replay;
  // Records that append() made durable must exist: anything else is damage.
  if (replay.commits + 1 < next_sequence_)
    fail(Errc::corrupted, "{}: commit {} of the journal, which was durable, cannot be read back",
         medium_->path(), replay.commits + 1);
  if (recovering_) look_for_later(log, replay);
  const bool after_crash = std::exchange(recovering_, false);
  if (replay.commits != 0) bring(found, image, after_crash);
  if (!damage_.empty()) return replay;
  if (replay.commits == 0) {
    // The header may only be in the page cache, because its writer was killed or its barrier
    // failed. The next record would then overwrite records that the previous header still needs.
    if (after_crash) write_header(header_);
    return replay;
  }
  RedoHeader next = header_;
  ++next.epoch;
  write_header(next);
  tail_ = kRedoLogBegin;
  next_sequence_ = 1;
  return replay;
}

bool RedoJournal::has_records() const {
  const std::vector<std::byte> log = read_log();
  RedoRecord record;
  return format::decode_redo_record(header_, 1, log, record) != 0;
}

std::uint64_t RedoJournal::end_with_marker(std::uint64_t end) const noexcept {
  return medium_->byte_addressable()
             ? end
             : base::round_up(end, kBlockBytes) + format::kRedoRecordHeaderBytes;
}

bool RedoJournal::fits(std::uint64_t record_bytes, std::uint64_t limit_bytes) const noexcept {
  return end_with_marker(tail_ + record_bytes) <= std::max(limit_bytes, medium_->size_bytes());
}

void RedoJournal::make_room(std::uint64_t end) {
  assert(end >= tail_);
  if (end <= medium_->size_bytes()) return;
  medium_->resize(base::round_up(end, kExtendBytes));
  barrier(*medium_);
  RedoHeader longer = header_;
  longer.least_bytes = medium_->size_bytes();
  write_header(longer);
}

// Records that all records before the next are durable, after a record that ends at `end`.
void RedoJournal::write_marker(std::uint64_t end) noexcept {
  const std::uint64_t at = base::round_up(end, kBlockBytes);
  assert(medium_->byte_addressable() || end_with_marker(end) <= medium_->size_bytes());
  if (next_sequence_ == 1 || medium_->byte_addressable()) return;
  try {
    std::vector<std::byte> marker;
    format::encode_redo_record(header_, next_sequence_ - 1, 0, {}, marker);
    medium_->write(marker, at);
  } catch (const std::exception&) {
    // The commits are durable without it.
  }
}

void RedoJournal::append(std::span<const std::byte> record) {
  if (!poison_.empty()) fail(Errc::poisoned, "{}", poison_);
  assert(!recovering_ && damage_.empty());
  make_room(end_with_marker(tail_ + record.size()));
  medium_->write(record, tail_);
  write_marker(tail_ + record.size());
  barrier(*medium_);
  tail_ += record.size();
  ++next_sequence_;
  write_marker(tail_);
}

}  // namespace vellum::atomic_file
