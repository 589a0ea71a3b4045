// store/journal/journal_writer.hpp: writing a journal: commits, and the checkpoints between them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/files/file.hpp"
#include "store/journal/journal_state.hpp"
#include "store/packs/io_cost.hpp"

namespace vellum::store {

// The start of a new journal: the header and the base frame of epoch 1. The rest of the file, up to
// journal_bytes(), is zero.
std::vector<std::byte> new_journal_start(const format::JournalHeader& header,
                                         const format::Version& base,
                                         const format::StoreKeys* keys = nullptr);

class JournalWriter {
 public:
  // Clears all bytes outside the frames of the state. Commits overwrite only blocks that are written
  // already, so their sync writes no metadata of the file system. Each time these blocks run out, the
  // writer prepares a larger number. REQUIRES: the caller holds the file's lock, and `state` was just
  // read from it.
  JournalWriter(std::unique_ptr<base::File> file, const JournalState& state);
  // Whether a commit frame of this payload size fits the rest of the half.
  bool fits(std::size_t payload_bytes) const noexcept;
  // Seals the frame of a commit and writes it at the tail, together with the marker of the frame
  // before. Nothing is durable yet. A write that fails leaves the tail where it was. REQUIRES:
  // fits(), and sync_commit() was called for the commit before.
  void write_commit(format::FrameBuffer& frame);
  // Flushes that frame: the commit point of a small commit. REQUIRES: write_commit() returned.
  void sync_commit();
  // Starts the next epoch in the other half with `base`, and flushes: the commit point of a
  // checkpoint. `commits` are the payloads of the commits that follow `base`, oldest first: those
  // appended since, and at most one more, whose commit point this is, too.
  void start_epoch(const format::Version& base, std::span<const format::Payload> commits = {});
  // The same for a version of another line. Its sequence may be any.
  void start_line(const format::Version& base);
  // Whether a base frame with these commits leaves a quarter of the half for others. `commit_bytes`:
  // size of their payloads.
  bool carries(const format::Version& base, std::size_t commits, std::size_t commit_bytes) const;
  // The version at which the epoch starts.
  const format::Version& base() const noexcept;
  // Size of the epoch's frames.
  std::uint64_t used_bytes() const noexcept;
  std::uint32_t half_bytes() const noexcept;
  std::uint64_t epoch() const noexcept;
  // Clean close: frees the space of everything except the header and the base frame. REQUIRES: no
  // commit frames.
  void release_space() noexcept;
  const base::File& file() const noexcept;
  const IoCost& io() const noexcept;
  // A sync failed, or the state of the file is unknown for another reason: the writer must not write
  // any more.
  bool sync_failed() const noexcept;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace vellum::store
