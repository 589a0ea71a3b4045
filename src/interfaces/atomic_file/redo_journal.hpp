// interfaces/atomic_file/redo_journal.hpp: the journal of an atomic file on its medium, and its
// effect on the file (format/redo.hpp gives the bytes).
//
// Protocol, and why one barrier per commit suffices:
// - append() writes the record after the last one, then issues a barrier. If a crash comes before
//   the barrier returns, the checksum of the record is correct, and the commit in progress is
//   complete; or it is wrong, and the journal ends before the record.
// - checkpoint() writes the records to the file, barrier (of the file), then the header of the next
//   epoch into the other header copy, barrier (of the journal). After a crash before that the old
//   header and all records exist, and the file has some of them: they are written again. After it,
//   old records are of another epoch and do not count. Only then may the next append() overwrite
//   them.
// - Truncation of a file first appends a record without lines, so no earlier record restores the
//   content past the new end: a record that states a smaller file size truncates the file.
// - The loss of a durable record that is corrupted later must be detected. A later record of the
//   epoch reveals it. For the last record, a commit marker in another block of the medium reveals
//   it (not in persistent memory, where it would cost as much as a small commit): a record without
//   lines, with the number of the record before it. The barrier of a record also makes the previous
//   record's marker durable. A power cut can lose only the last record's marker.
// - Only the journal writes the file, and the program's stores never reach it by themselves: its
//   mapping is private.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/redo.hpp"
#include "interfaces/atomic_file/medium.hpp"

namespace vellum::atomic_file {

// Bytes of the file, within a page.
struct FilePiece {
  std::uint64_t offset_bytes = 0;
  std::span<const std::byte> bytes;
};

struct Replay {
  std::uint64_t commits = 0;
  std::uint64_t bytes = 0;  // stored by them
  std::uint64_t log_bytes = 0;
  // With Damage::keep: durable commits after the damage that were lost, as far as the journal
  // shows.
  std::uint64_t commits_lost = 0;
};

// How to treat a journal that was cut, or that lacks a durable record or header.
enum class Damage {
  refuse,  // throw Errc::corrupted, do nothing
  keep,    // records before the damage count; the journal is never written
};

class RedoJournal {
 public:
  // Creates a journal on an empty medium. Durable on return.
  static RedoJournal create(std::unique_ptr<MediumFile> medium, const format::RedoHeader& header,
                            std::uint64_t log_bytes);
  // Reads the header. Errc::corrupted, with the medium's path: there is none, or the medium has
  // become shorter.
  static RedoJournal open(std::unique_ptr<MediumFile> medium, Damage damage = Damage::refuse);

  const format::RedoHeader& header() const noexcept { return header_; }
  bool has_header() const noexcept { return header_.epoch != 0; }
  // With Damage::keep, after checkpoint(): the damage and its place; empty when there is none.
  // REQUIRES: only destruction follows.
  const std::string& damage() const noexcept { return damage_; }

  // Applies the records to the file, durably, and empties the journal. Cheap when there are none.
  // Errc::corrupted, and nothing is changed: a durable record is missing. With Damage::keep the
  // records before it are applied, and the journal stays as it is. After open() the journal may
  // have records: call this before the first append().
  Replay checkpoint(MediumFile& image);

  // Whether a record of this size fits, when the journal may grow to `limit_bytes`.
  bool fits(std::uint64_t record_bytes, std::uint64_t limit_bytes) const noexcept;
  // Makes a commit durable. REQUIRES: it fits, or the journal is empty, which then grows;
  // checkpoint() was called after open(). Throws no_space or io: the record does not count, and
  // another one may be appended. Errc::poisoned: a barrier failed; REQUIRES: only destruction
  // follows.
  void append(std::span<const std::byte> record);
  // Refuses further appends: memory and journal differ.
  void poison(const std::string& why) { poison_ = why; }
  // Whether there is a record, after open().
  bool has_records() const;
  std::uint64_t next_sequence() const noexcept { return next_sequence_; }
  bool empty() const noexcept { return next_sequence_ == 1; }

 private:
  explicit RedoJournal(std::unique_ptr<MediumFile> medium) : medium_(std::move(medium)) {}
  void make_room(std::uint64_t end);
  // The minimal end of the medium for a record that ends at `end`: with its marker.
  std::uint64_t end_with_marker(std::uint64_t end) const noexcept;
  void write_marker(std::uint64_t end) noexcept;
  struct FoundRecords {
    Replay replay;
    std::vector<FilePiece> pieces;
    std::uint64_t smallest_bytes = UINT64_MAX, file_bytes = UINT64_MAX;  // of the file
  };
  FoundRecords find_records(std::span<const std::byte> log) const;
  void bring(FoundRecords& found, MediumFile& image, bool after_crash);
  void note_damage(const std::string& what);
  void look_for_later(std::span<const std::byte> log, Replay& replay);
  void take_header_of_records();
  void barrier(MediumFile& medium);
  // Bytes of a failed append() after the tail are no commit; after a crash the end is unknown.
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

}  // namespace vellum::atomic_file
