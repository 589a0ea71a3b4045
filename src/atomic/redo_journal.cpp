#include "atomic/redo_journal.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vellum/error.hpp>

#include "atomic/apply_pieces.hpp"

namespace vellum::atomic {

using format::kRedoLogBegin;
using format::RedoHeader;
using format::RedoRecord;
using format::RedoRun;

namespace {

// An extension flushes metadata, so it is worth many commits.
constexpr std::uint64_t kExtendBytes = 1 << 20;

// What of earlier commits still lies in a file that is cut to `file_bytes`.
void cut(std::vector<Piece>& pieces, std::uint64_t file_bytes) {
  std::erase_if(pieces, [&](const Piece& piece) { return piece.offset_bytes >= file_bytes; });
  for (Piece& piece : pieces)
    piece.bytes = piece.bytes.first(
        std::min<std::uint64_t>(piece.bytes.size(), file_bytes - piece.offset_bytes));
}

void append_pieces(const RedoRecord& record, std::vector<Piece>& pieces) {
  for (const RedoRun& run : record.runs) {
    const std::uint64_t offset = run.first_line * format::kLineBytes;
    if (offset >= record.file_bytes) continue;
    const std::uint64_t bytes =
        std::min<std::uint64_t>(run.count * format::kLineBytes, record.file_bytes - offset);
    pieces.push_back({offset, {run.bytes, bytes}});
  }
}

std::uint64_t slot_of(std::uint64_t epoch) { return epoch % 2 * format::kRedoSlotBytes; }

}  // namespace

RedoJournal RedoJournal::create(std::unique_ptr<MediumFile> medium, const RedoHeader& header,
                                std::uint64_t log_bytes) {
  RedoJournal journal(std::move(medium));
  if (journal.medium_->size_bytes() < kRedoLogBegin + log_bytes)
    journal.medium_->resize(kRedoLogBegin + log_bytes);
  journal.write_header(header);
  return journal;
}

RedoJournal RedoJournal::open(std::unique_ptr<MediumFile> medium) {
  RedoJournal journal(std::move(medium));
  const char* why = "it is too short";
  bool found = false;
  for (std::uint64_t slot = 0; slot < 2; ++slot) {
    const std::uint64_t at = slot * format::kRedoSlotBytes;
    if (journal.medium_->size_bytes() < kRedoLogBegin) break;
    std::array<std::byte, format::kRedoHeaderBytes> bytes;
    journal.medium_->read(bytes, at);
    RedoHeader header;
    const char* wrong = format::decode_redo_header(bytes, header);
    if (wrong == nullptr && slot_of(header.epoch) != at) wrong = "a header is in the other's place";
    if (wrong != nullptr) {
      if (!found) why = wrong;
    } else if (!found || header.epoch > journal.header_.epoch) {
      journal.header_ = header;
      found = true;
    }
  }
  journal.recovering_ = true;
  if (!found)
    throw Error(Errc::damaged, journal.medium_->path() + ": is no journal of a file: " + why);
  return journal;
}

// A header that may have arrived or not decides whether records count: no more commits then.
void RedoJournal::write_header(const RedoHeader& header) {
  try {
    medium_->write(format::encode_redo_header(header), slot_of(header.epoch));
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
    throw Error(Errc::poisoned, poison_ +
                                    ": whether the last commit is on the disk is not known; "
                                    "open the file again");
  }
}

std::vector<std::byte> RedoJournal::read_log() const {
  std::vector<std::byte> log;
  log.resize(log_end() - kRedoLogBegin);
  medium_->read(log, kRedoLogBegin);
  return log;
}

Replay RedoJournal::checkpoint(MediumFile& image) {
  if (!poison_.empty()) throw Error(Errc::poisoned, poison_);
  std::vector<std::byte> copy;
  std::span<const std::byte> log = medium_->mapped();
  if (log.empty()) {
    copy = read_log();
    log = copy;
  } else {
    log = log.subspan(kRedoLogBegin, log_end() - kRedoLogBegin);
  }
  Replay replay;
  std::uint64_t smallest = UINT64_MAX, file_bytes = UINT64_MAX;
  std::vector<Piece> pieces;
  for (RedoRecord record; replay.log_bytes < log.size();) {
    const std::size_t bytes = format::decode_redo_record(header_, replay.commits + 1,
                                                         log.subspan(replay.log_bytes), record);
    if (bytes == 0) break;
    ++replay.commits;
    replay.log_bytes += bytes;
    for (const RedoRun& run : record.runs) replay.bytes += run.count * format::kLineBytes;
    if (record.file_bytes < file_bytes) cut(pieces, record.file_bytes);
    append_pieces(record, pieces);
    file_bytes = record.file_bytes;
    smallest = std::min(smallest, file_bytes);
  }
  // What append() made durable has to be there: anything else is damage, and no reason to go on.
  if (replay.commits + 1 < next_sequence_)
    throw Error(Errc::damaged, medium_->path() + ": commit " + std::to_string(replay.commits + 1) +
                                   " of the journal, which was durable, cannot be read back");
  const bool after_crash = std::exchange(recovering_, false);
  if (replay.commits == 0) {
    // The header that was read may be in the page cache alone, its writer having been killed or its
    // barrier having failed; the next record would overwrite what the one before still needs.
    if (after_crash) write_header(header_);
    return replay;
  }
  // After a crash the file may be longer than it was, or not have got as long. While it is mapped
  // it has been cut already, and must not be again: that would take the program's pages away.
  if (after_crash) {
    if (image.size_bytes() > smallest) image.resize(smallest);
    if (image.size_bytes() < file_bytes) image.resize(file_bytes);
  }
  apply_pieces(pieces, image);
  barrier(image);
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

bool RedoJournal::fits(std::uint64_t record_bytes, std::uint64_t limit_bytes) const noexcept {
  return tail_ + record_bytes <= std::max(limit_bytes, medium_->size_bytes());
}

void RedoJournal::make_room(std::uint64_t end) {
  if (end <= medium_->size_bytes()) return;
  medium_->resize((end + kExtendBytes - 1) / kExtendBytes * kExtendBytes);
}

// Ordering: the barrier of the record is also that of the zeros before which it lies.
void RedoJournal::append(std::span<const std::byte> record) {
  if (!poison_.empty()) throw Error(Errc::poisoned, poison_);
  make_room(tail_ + record.size());
  medium_->write(record, tail_);
  barrier(*medium_);
  tail_ += record.size();
  ++next_sequence_;
}

}  // namespace vellum::atomic
