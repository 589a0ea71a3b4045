// store/page_map/overlay.hpp: the journal's commits as pages on top of a version.
//
// Immutable after construction. Lookups neither allocate nor throw: the fault handler calls them.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "format/journal.hpp"
#include "format/records/delta.hpp"
#include "format/wire/types.hpp"
#include "store/page_map/page_writes.hpp"

namespace vellum::store {

// The parts of a commit. Deltas are decompressed and parsed; blocks stay compressed. Throws
// Errc::corrupted.
std::vector<PageWrites> parse_commit(format::CommitBody&& body);
// All pages of a block. Throws Errc::corrupted.
std::vector<std::byte> unpack_block(const PageBlock& block);

// Limit of the decompressed size of an epoch's commits. Readers keep all of it in memory, so a writer
// checkpoints before it reaches the limit. A journal that claims more is corrupted.
std::uint64_t max_epoch_raw_bytes(std::uint32_t journal_half_bytes) noexcept;
std::uint64_t raw_bytes_of(const format::CommitBody& body) noexcept;
// Throws Errc::corrupted.
void check_raw_bytes(std::span<const format::CommitBody> commits, std::uint32_t journal_half_bytes);

class Overlay {
 public:
  struct Line {
    format::PageNumber page = 0;
    std::uint32_t order = 0;  // of the commit, ascending
    format::PartType type = format::PartType::zeros;
    std::uint32_t index = 0;                    // in `batch`
    const std::byte* content = nullptr;         // type pages
    const format::DeltaBatch* batch = nullptr;  // type deltas

    bool full() const noexcept { return type != format::PartType::deltas; }
    void apply_to(std::byte* page_bytes) const noexcept;
  };

  Overlay() = default;
  explicit Overlay(std::vector<format::CommitBody> commits);
  bool empty() const noexcept { return lines_.empty(); }
  // The lines of pages [first, first + count), by page. Lines of one page are ordered newest first,
  // and end with the first full one.
  std::span<const Line> find(format::PageNumber first, std::uint64_t count) const noexcept;
  // The first line of the first page >= `page`, or nullptr.
  const Line* next(format::PageNumber page) const noexcept;
  std::span<const Line> lines() const noexcept { return lines_; }

 private:
  std::deque<PageWrites> pieces_;
  std::deque<std::vector<std::byte>> contents_;
  std::vector<Line> lines_;
};

}  // namespace vellum::store
