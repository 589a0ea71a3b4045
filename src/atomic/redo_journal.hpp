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
//  - Nothing else writes the file, and the program's stores never reach it by themselves: its
//    mapping is private.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "atomic/medium.hpp"
#include "format/redo.hpp"

namespace vellum::atomic {

struct Replay {
  std::uint64_t commits = 0;
  std::uint64_t bytes = 0;  // that they stored
  std::uint64_t log_bytes = 0;
};

class RedoJournal {
 public:
  // Makes a new one of an empty medium: durable when this returns.
  static RedoJournal create(std::unique_ptr<MediumFile> medium, const format::RedoHeader& header,
                            std::uint64_t log_bytes);
  // Reads the header. Errc::damaged, with the medium's path.
  static RedoJournal open(std::unique_ptr<MediumFile> medium);

  const format::RedoHeader& header() const noexcept { return header_; }

  // Brings the records to the file, durably, and empties the journal. Nothing to bring is cheap.
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
  std::string poison_;       // why
};

}  // namespace vellum::atomic
