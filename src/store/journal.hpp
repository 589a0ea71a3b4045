// store/journal.hpp: a branch's journal file: read by anyone, written by the one who holds its
// lock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "format/journal.hpp"
#include "store/util.hpp"

namespace vellum::store {

struct JournalState {
  format::JournalHeader header;
  std::uint64_t epoch = 0;
  format::Version base;
  std::vector<format::CommitBody> commits;  // oldest first
  std::uint64_t tail_bytes = 0;             // file offset just past the last valid frame
  std::uint64_t head_sequence() const { return base.sequence + commits.size(); }
};

// Reads the state while a writer may be committing: when an epoch has changed during the read, it
// reads again, so the result is a state that was the head at some moment between call and return.
// Throws Errc::damaged naming the file when neither half holds a valid base frame.
JournalState read_journal(const base::File& file, const format::Uuid& store_id);

// Every whole base frame that the file holds: the one of the head, and, until its half is needed,
// the one before it. After a power cut the head may be what follows from either.
std::vector<format::Version> read_base_versions(const base::File& file,
                                                const format::Uuid& store_id);

// A new journal file's whole content: header, zeroed halves, base frame of epoch 1.
std::vector<std::byte> new_journal_bytes(const format::JournalHeader& header,
                                         const format::Version& base);

class JournalWriter {
 public:
  // REQUIRES: the caller holds the file's lock; `state` was just read from it. Zero-fills what the
  // file lacks, so that commits only overwrite written blocks (no file system metadata changes on a
  // commit).
  JournalWriter(std::unique_ptr<base::File> file, const JournalState& state);
  // True when a commit frame of this payload size still fits the half.
  bool fits(std::size_t payload_bytes) const noexcept;
  // Appends a commit frame and syncs: the commit point of a small commit. A failed write leaves the
  // tail where it was.
  void append_commit(std::span<const std::byte> payload);
  // Starts the next epoch in the other half with `base` and syncs: the commit point of a fold.
  void start_epoch(const format::Version& base);
  // Clean close: gives back the space of everything but the header and the base frame. REQUIRES: no
  // commit frames.
  void release_space() noexcept;
  const IoCost& io() const noexcept;
  // A sync failed, or the file is in an unknown state for another reason: the writer must give up.
  bool sync_failed() const noexcept;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace vellum::store
