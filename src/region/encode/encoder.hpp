// region/encode/encoder.hpp: the encoding of dirty pages for a commit.
//
// The encoder records each dirty page in the cheapest form: unchanged (dropped), zero, a delta
// against its base copy, or whole, in a compressed block with its neighbours. A spilled page is read
// from the spill file. The base copy is updated at once, while the page is in the cache. It gets the
// recorded content rather than that of the page, since another thread may be writing the page. When
// the commit fails, undo() restores the base copies.
//
// A background commit is encoded in two steps. capture() compares and copies: afterwards the base
// copies have the recorded content, and later stores of the program do not change it. pack()
// compresses them.
//
// Threads: one caller at a time; the encoder processes slices of the pages in parallel.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes/codec.hpp"
#include "base/threads/thread_pool.hpp"
#include "format/records/delta.hpp"
#include "memory/cards/tracked_range.hpp"
#include "memory/memory.hpp"
#include "store/branch/branch_writer.hpp"

namespace vellum::region {

class Encoder {
 public:
  // `memory` outlives the encoder.
  Encoder(RegionMemory& memory, const format::Encoding& encoding, std::size_t threads);
  ~Encoder();

  // Restricts the next encode() or capture(): of these pages it compares only the marked lines, since
  // no others can have changed since the last commit. REQUIRES: `marked` ascends, and lives until then.
  void use_marks(std::span<const cards::MarkedPage> marked) noexcept { marked_ = marked; }
  // Encodes `dirty` (ascending) into `commit`. Returns the number of changed pages. Throws
  // Errc::out_of_memory, the errors of Commit::add(), and base::Interrupted; the caller then calls
  // undo().
  std::uint64_t encode(std::span<const format::PageNumber> dirty,
                       store::BranchWriter::Commit& commit);
  // The same in two steps. encode() is better when many pages are spilled, since capture() loads them
  // into memory. REQUIRES: nothing else changes base copies in between.
  std::uint64_t capture(std::span<const format::PageNumber> dirty);
  void pack(store::BranchWriter::Commit& commit);

  // After a failed commit: restores the base copies as they were before encode(). Calls `reload` for
  // pages whose old content exceeded the memory budget; it must restore their base copies from the
  // store. Its exceptions propagate.
  void undo(const std::function<void(std::span<const format::PageNumber>)>& reload);
  // The memory budget for old pages, over all slices of a commit. REQUIRES: nothing is encoded.
  void set_undo_budget(std::size_t bytes) noexcept { undo_budget_bytes_ = bytes; }
  // After a durable commit: drops the data for undo(). Returns the pages that were read from the spill
  // file, ascending.
  std::vector<format::PageNumber> accept();

 private:
  struct Slice;
  struct Captured;
  struct Worker;
  Worker& worker(std::size_t number);
  template <typename Body>
  std::uint64_t for_slices(std::span<const format::PageNumber> dirty, const Body& body);
  void capture_slice(std::span<const format::PageNumber> dirty, Worker& worker, Slice& slice);
  void prefetch(format::PageNumber page, std::uint64_t lines) const noexcept;
  void capture_page(format::PageNumber page, std::uint64_t lines, Worker& worker, Slice& slice);
  void capture_with_base_copy(format::PageNumber page, std::uint64_t lines, Slice& slice);
  void capture_spilled(format::PageNumber page, Worker& worker, Slice& slice);
  void capture_fresh(format::PageNumber page, Worker& worker, Slice& slice);
  void capture_bare(format::PageNumber page, Worker& worker, Slice& slice);
  void keep_old_page(format::PageNumber page, Slice& slice);
  void write_fresh_base_copies(Worker& worker, Slice& slice);
  void write_base_copies(format::PageNumber first, std::span<const std::byte> bytes, Slice& slice);
  void pack_slice(Slice& slice, Worker& worker, store::BranchWriter::Commit& commit);
  void pack_blocks(Captured& captured, Worker& worker, bool note);
  store::PageBlock compress(std::span<const format::PageNumber> pages, const Captured& captured,
                            Worker& worker, bool note);

  RegionMemory& memory_;
  const std::byte* pages_;
  Backing& backing_;
  format::Encoding encoding_;
  const std::size_t max_delta_cost_bytes_, max_fresh_delta_cost_bytes_;
  base::ThreadPool pool_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Slice>> slices_;  // of the commit in progress
  // Old page contents kept for undo(). After a failure, further ones are read from the store.
  std::size_t undo_budget_bytes_ = 64u << 20;
  std::atomic<std::size_t> kept_bytes_{0};
  std::span<const cards::MarkedPage> marked_;  // of the commit in progress
};

}  // namespace vellum::region
