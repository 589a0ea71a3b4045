// atomic/redo_journal.hpp: the journal of an atomic file on its medium, and what it does to the
// file (format/redo.hpp gives the bytes).
//
// Protocol, and why one barrier a commit is enough:
//  - append(): the record is written behind the last one, then a barrier. A crash before the
//    barrier returned leaves a record whose checksum is right, which is then a commit in progress,
//    whole; or wrong: the journal ends before it.
//  - checkpoint(): what the records say is written to the file, barrier (of the file), then the
//    header of the next epoch into the other slot, barrier (of the journal). A crash before that
//    leaves the old header, all records, and a file that got some of them: they are written again.
//    After it, old records are of another epoch, and count no more; so the next append() may
//    overwrite them, and not before.
//  - A file that is cut gets a record without lines first, so that no earlier one brings back what
//    lay behind the cut: a record that says a smaller size than the one before cuts.
//  - A record that was durable and is damaged later must be missed. A later record of the epoch
//    shows it; for the last ones a mark does, in another block of the medium (not in persistent
//    memory, where it would cost as much as a small commit): a record without lines that says the
//    number of one before. The same barrier that makes a record durable does so for the mark of the
//    one before it; a power cut can lose the mark of the last.
//  - Nothing else writes the file, and the program's stores never reach it by themselves: its
//    mapping is private.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "atomic/apply_pieces.hpp"
#include "atomic/medium.hpp"
#include "format/redo.hpp"

namespace vellum::atomic {

struct Replay {
  std::uint64_t commits = 0;
  std::uint64_t bytes = 0;  // that they stored
  std::uint64_t log_bytes = 0;
  // Of a damaged journal that was opened nevertheless: durable commits behind the damage, as far
  // as the journal tells.
  std::uint64_t commits_lost = 0;
};

// What to do about a journal that was cut, or that lacks a record or a header that was durable.
enum class Damage {
  refuse,  // Errc::damaged, and nothing is done
  keep,    // what precedes the damage counts, and the journal is never written
};

class RedoJournal {
 public:
  // Makes a new one of an empty medium: durable when this returns.
  static RedoJournal create(std::unique_ptr<MediumFile> medium, const format::RedoHeader& header,
                            std::uint64_t log_bytes);
  // Reads the header. Errc::damaged, with the medium's path: there is none, or the medium is
  // shorter than it was.
  static RedoJournal open(std::unique_ptr<MediumFile> medium, Damage damage = Damage::refuse);

  const format::RedoHeader& header() const noexcept { return header_; }
  bool has_header() const noexcept { return header_.epoch != 0; }
  // With Damage::keep, after checkpoint(): what is wrong, and where; empty when nothing is.
  // REQUIRES: only destruction is left then.
  const std::string& damage() const noexcept { return damage_; }

  // Brings the records to the file, durably, and empties the journal. Nothing to bring is cheap.
  // Errc::damaged, and nothing was done: a record that was durable is missing. With Damage::keep
  // what precedes it is brought, and the journal stays as it is.
  // The journal may hold records from before open(); append() must not be called before this then.
  Replay checkpoint(MediumFile& image);

  // Whether a record of so many bytes has room, or would have in an empty journal that may become
  // `limit_bytes` long.
  bool fits(std::uint64_t record_bytes, std::uint64_t limit_bytes) const noexcept;
  // Makes a commit durable. REQUIRES: it fits, or the journal is empty, which then grows. Throws
  // no_space, io: it is not there, another may be appended. Errc::poisoned: a barrier failed; only
  // destruction is left.
  void append(std::span<const std::byte> record);
  // Nothing is appended any more: memory and journal do not agree.
  void poison(const std::string& why) { poison_ = why; }
  // Whether there is a record, after open().
  bool has_records() const;
  std::uint64_t next_sequence() const noexcept { return next_sequence_; }
  bool empty() const noexcept { return next_sequence_ == 1; }

 private:
  explicit RedoJournal(std::unique_ptr<MediumFile> medium) : medium_(std::move(medium)) {}
  void make_room(std::uint64_t end);
  // Where the medium ends at least, behind a record that ends at `end`: its mark has to have room.
  std::uint64_t end_with_mark(std::uint64_t end) const noexcept;
  void write_mark(std::uint64_t end) noexcept;
  struct Found {
    Replay replay;
    std::vector<Piece> pieces;
    std::uint64_t smallest_bytes = UINT64_MAX, file_bytes = UINT64_MAX;  // of the file
  };
  Found find_records(std::span<const std::byte> log) const;
  void bring(Found& found, MediumFile& image, bool after_crash);
  void note_damage(const std::string& what);
  void look_for_later(std::span<const std::byte> log, Replay& replay);
  void take_header_of_records();
  void barrier(MediumFile& medium);
  // What a failed append() may have left behind the tail is no commit; after a crash the end is not
  // known.
  std::uint64_t log_end() const { return recovering_ ? medium_->size_bytes() : tail_; }
  std::vector<std::byte> read_log() const;
  void write_header(const format::RedoHeader& header);

  std::unique_ptr<MediumFile> medium_;
  format::RedoHeader header_;
  std::uint64_t tail_ = format::kRedoLogBegin;
  std::uint64_t next_sequence_ = 1;
  bool recovering_ = false;  // from open() to the first checkpoint()
  Damage on_damage_ = Damage::refuse;
  std::string damage_;
  std::string poison_;  // why
};

}  // namespace vellum::atomic
