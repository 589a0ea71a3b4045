// region/memory.hpp: the mapped range of a region: reserving it, paging it in, noticing writes.
//
// What the engines share is here; what differs (how a fault arrives, how writes are noticed) is in
// uffd_memory.cpp and sigsegv_memory.cpp. Pages come in by chunks of 64 KiB. A chunk is missing,
// being filled by one thread while others wait, or present; present stays until the region closes.
//
// Signal context: on_fault() and all it calls. It allocates nothing and takes HandlerLocks only,
// none of which is ever held while region memory is touched.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>
#include <vellum/region.hpp>

#include "base/handler_lock.hpp"
#include "base/reserve.hpp"
#include "region/backing.hpp"
#include "region/fault_router.hpp"
#include "store/image_file.hpp"
#include "store/page_source.hpp"

namespace vellum::region {

using format::PageNumber;

inline constexpr std::size_t kChunkBytes = 64u << 10;
inline constexpr std::size_t kChunkPages = kChunkBytes / kPageBytes;
inline constexpr std::size_t kSlotBytes =
    2u << 20;  // what one page table maps: the unit of looking for writes
inline constexpr std::size_t kSlotPages = kSlotBytes / kPageBytes;

struct MemoryOptions {
  std::uint64_t capacity_bytes = 0;  // multiple of kSlotBytes
  std::uint64_t size_bytes = 0;      // multiple of kPageBytes
  bool writable = false;
  std::uint64_t wanted_address = 0;  // 0: anywhere
  bool address_required = false;     // otherwise only preferred
  // Engine mapped: what is mapped, and the last commit as the store has it.
  std::shared_ptr<store::ImageFile> image;
  std::function<std::shared_ptr<store::PageSource>()> open_committed;
};

class RegionMemory : public FaultTarget {
 public:
  // `source` gives the committed content; null: all zero. Throws Errc::busy (address taken),
  // out_of_memory.
  static std::unique_ptr<RegionMemory> create(Engine engine, const MemoryOptions& options,
                                              std::shared_ptr<store::PageSource> source);
  ~RegionMemory() override;

  std::byte* data() const noexcept { return base_; }
  std::uint64_t size_bytes() const noexcept { return size_bytes_.load(std::memory_order_acquire); }
  std::uint64_t capacity_bytes() const noexcept { return options_.capacity_bytes; }
  bool writable() const noexcept { return options_.writable; }
  virtual Engine engine() const noexcept = 0;
  Backing& backing() noexcept { return backing_; }

  // Brings pages in. False: `failure` says why.
  virtual bool make_present(PageNumber first, std::size_t count,
                            store::ReadFailure& failure) noexcept;

  // Appends the pages that may have been written since the last call, ascending, and arms them
  // again. No write is lost: one that runs meanwhile is reported now or next time. A page may be
  // reported that was not written.
  virtual void collect_dirty(std::vector<PageNumber>& out) = 0;
  // Puts pages back to their twins. REQUIRES: nobody else uses them meanwhile.
  virtual void discard(const std::vector<PageNumber>& pages) = 0;

  // What a commit of pages that collect_dirty() gave asks of the engine, in this order. The engines
  // over a memfd have their twins at hand, and need nothing.
  // Before they are encoded: makes their twins right. Throws: the commit has failed.
  virtual void prepare_commit(std::span<const PageNumber>) {}
  // The commit is durable, or no page had changed.
  virtual void finish_commit(std::span<const PageNumber>) noexcept {}
  // It has failed, and the encoder has undone its work.
  virtual void abandon_commit(std::span<const PageNumber>) noexcept {}
  // A page as of the commit at hand, or nullptr when it is not in memory.
  virtual const std::byte* twin_of(PageNumber page) const noexcept {
    return backing_.has_twin(page) ? backing_.twin(page) : nullptr;
  }
  // Nothing will be committed any more after this version.
  virtual void note_closed(const format::Version&) noexcept {}
  // While pinned, system calls may read and write the pages. REQUIRES: present.
  virtual void pin(PageNumber first, std::size_t count) = 0;
  virtual void unpin(PageNumber first, std::size_t count) noexcept = 0;

  // REQUIRES: within capacity. Larger: the new pages are zero. Smaller: pages past the end are
  // forgotten (after discard); REQUIRES: nobody else uses them.
  virtual void resize(std::uint64_t size_bytes);

  FaultResult on_fault(const Fault& fault) noexcept override;

 protected:
  RegionMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source);

  // Engine hooks; all run in signal context, too. 0 or errno.
  // The signal by which a page asks to come in, or to be opened for writing.
  virtual int fault_signal() const noexcept = 0;
  // Pages without a twin. REQUIRES: none of them is in use: their chunks are being filled, or
  // discard() runs.
  virtual int map_zero(PageNumber first, std::size_t count) noexcept = 0;
  virtual int map_present(PageNumber first,
                          std::size_t count) noexcept = 0;  // pages whose twins were just written
  // A page that is not accessible although its chunk is present.
  virtual int resolve_present(PageNumber page, bool is_write) noexcept = 0;
  virtual int protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept = 0;
  // First protection of the range, once mapped.
  virtual void start() = 0;
  void stop_routing() noexcept { remove_route(this); }

  bool chunk_missing(std::size_t chunk) const noexcept {
    return chunk_state(chunk).load(std::memory_order_acquire) == kMissing;
  }
  void wait_while_filling(std::size_t chunk) const noexcept {
    chunk_state(chunk).wait(kFilling, std::memory_order_acquire);
  }
  bool fill(std::size_t chunk, store::ReadFailure& failure) noexcept;
  void report(const store::ReadFailure& failure) const noexcept;
  std::atomic<std::uint64_t>& touched_word(std::size_t slot) const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(touched_.data())[slot / 64];
  }

  const MemoryOptions options_;
  std::atomic<std::uint64_t> size_bytes_;
  Backing backing_;
  std::byte* base_ = nullptr;

 private:
  enum : std::uint32_t { kMissing = 0, kFilling = 1, kPresent = 2 };
  std::atomic<std::uint32_t>& chunk_state(std::size_t chunk) const noexcept {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(chunks_.data())[chunk];
  }
  bool claim(std::size_t chunk) noexcept;
  void settle(std::size_t chunk, std::size_t count, std::uint32_t state) noexcept;
  bool fill_zero(std::size_t chunk, std::size_t pages, store::ReadFailure& failure) noexcept;
  bool fill_from_source(std::size_t chunk, std::size_t pages, store::ReadFailure& failure) noexcept;
  int open_cut_chunk(std::uint64_t old_size, std::uint64_t new_size) noexcept;
  void touch(PageNumber first, std::size_t count) noexcept;
  void map_range();

  static constexpr std::size_t kScratches = 8;
  std::shared_ptr<store::PageSource> source_;
  base::Reservation chunks_;   // a 32-bit state a chunk
  base::Reservation touched_;  // a bit a slot: some chunk of it has been present
  base::Reservation scratch_;  // kScratches chunks
  base::HandlerLock scratch_locks_[kScratches];
};

// Where a branch's region goes at its first opening: far from where the loader and malloc put
// things, so that the address is likely to be free the next time, too.
std::uint64_t far_address(std::uint64_t branch_id) noexcept;

// What `engine` comes to on this machine, for a region that is writable or not (mapped: automatic,
// then). Prints the one-line notice when automatic falls back.
Engine choose_engine(Engine wanted, bool writable);

}  // namespace vellum::region
