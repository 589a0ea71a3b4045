// store/journal/journal_state.hpp: the content of a branch's journal file.
// Any process may read it (store/journal/read_journal.hpp). Only the holder of its lock writes it
// (store/journal/journal_writer.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "format/journal.hpp"
#include "format/version.hpp"
#include "format/wire/superblock.hpp"

namespace vellum::store {

inline format::FrameSeal frame_seal(const format::JournalHeader& header,
                                    const format::StoreKeys* keys) noexcept {
  return {format::checksum_seed(header.store_id) ^ header.branch_id, keys, header.branch_id};
}

struct JournalState {
  format::JournalHeader header;
  const format::StoreKeys* keys = nullptr;  // null: of a plain store
  std::uint64_t epoch = 0;
  format::Version base;
  std::vector<format::CommitBody> commits;  // oldest first
  std::uint64_t base_end_bytes = 0;         // file offset just past the base frame
  std::uint64_t tail_bytes = 0;             // file offset just past the last valid frame
  format::Authenticator last_frame{};       // of the last valid frame

  const format::CommitInfo& head_info() const noexcept { return format::head_info(base, commits); }
  std::uint64_t head_sequence() const noexcept { return format::head_sequence(base, commits); }
  // For the frame at the tail.
  format::FrameSeal frame_seal() const noexcept {
    format::FrameSeal out = store::frame_seal(header, keys);
    out.before = last_frame;
    return out;
  }
};

// The size of the whole file.
inline std::uint64_t journal_bytes(std::uint32_t half_bytes) noexcept {
  return format::kJournalHeaderBytes + 2 * std::uint64_t{half_bytes};
}

}  // namespace vellum::store
