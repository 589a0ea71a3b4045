// store/catalog/journal.hpp: a branch's journal file.
// Anyone may read it; only the holder of its lock writes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "format/journal.hpp"
#include "store/pack/io_cost.hpp"

namespace vellum::store {

struct JournalState {
  format::JournalHeader header;
  std::uint64_t epoch = 0;
  format::Version base;
  std::vector<format::CommitBody> commits;  // oldest first
  std::uint64_t tail_bytes = 0;             // file offset just past the last valid frame
  std::uint64_t head_sequence() const { return base.sequence + commits.size(); }
};

// Reads the state while a writer may be committing. If the epoch changes during the read, it reads
// again, so the result was the head at some moment between call and return. Throws Errc::corrupted,
// naming the file, when
// - the file is shorter than its header says,
// - neither half holds a valid base frame, or
// - a durable commit is missing, as a later frame or a marker shows (docs/durability.md says which
//   losses nothing shows).
JournalState read_journal(const base::File& file, const format::Uuid& store_id);

// The readable content of a journal that read_journal() calls corrupted.
struct JournalRemains {
  JournalState state;  // up to the damage
  // How many commits behind it were durable at least. Empty: the file was cut, and nothing tells.
  std::optional<std::uint64_t> lost_commits;
};

// For repair. REQUIRES: nobody writes meanwhile. Errc::corrupted: not even a base frame is whole.
JournalRemains read_corrupted_journal(const base::File& file, const format::Uuid& store_id);

// The size of the whole file.
std::uint64_t journal_bytes(std::uint32_t half_bytes) noexcept;

// Every whole base frame in the file: that of the head and, until its half is needed again, the one
// before it. After a power cut the head may follow from either.
std::vector<format::Version> read_base_versions(const base::File& file,
                                                const format::Uuid& store_id);

// A new journal file's whole content: header, zeroed halves, base frame of epoch 1.
std::vector<std::byte> new_journal_bytes(const format::JournalHeader& header,
                                         const format::Version& base);

class JournalWriter {
 public:
  // REQUIRES: the caller holds the file's lock; `state` was just read from it. Clears all bytes
  // outside the frames of the state. Commits overwrite only written blocks, so their sync writes no
  // metadata of the file system. Each time these blocks run out, a larger number is prepared.
  JournalWriter(std::unique_ptr<base::File> file, const JournalState& state);
  // True when a commit frame of this payload size still fits the half.
  bool fits(std::size_t payload_bytes) const noexcept;
  // Appends a commit frame and syncs: the commit point of a small commit. The same sync makes the
  // previous frame's marker durable. A failed write leaves the tail where it was.
  void append_commit(std::span<const std::byte> payload);
  // Starts the next epoch in the other half with `base` and syncs: the commit point of a
  // checkpoint.
  void start_epoch(const format::Version& base);
  // Clean close: gives back the space of everything but the header and the base frame. REQUIRES: no
  // commit frames.
  void release_space() noexcept;
  const base::File& file() const noexcept;
  const IoCost& io() const noexcept;
  // A sync failed, or the file is in an unknown state for another reason: the writer must give up.
  bool sync_failed() const noexcept;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace vellum::store
