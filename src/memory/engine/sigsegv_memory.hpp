// memory/engine/sigsegv_memory.hpp: engine sigsegv (mprotect), for systems without userfaultfd or
// without permission for it.
//
// It works like Privateer 2.0 (Youssef et al., HPEC 2022). The range starts without access. The
// first access fills a chunk and opens it for reading; the first write opens the page for writing
// and notes it as dirty. If the chunk has a dirty page already, the whole chunk is opened:
// sequential writers fault once in 64 KiB.
//
// The kernel allows 65,530 mappings per process, and every range of another protection costs two.
// Where mprotect(2) fails for that reason, increasingly large ranges are opened as one and count as
// dirty; commit() compares them and skips unchanged pages.
#pragma once

#include <cassert>
#include <memory>
#include <vector>

#include "memory/paged/paged_memory.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {

class SigsegvMemory final : public PagedMemory {
 public:
  SigsegvMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source);
  ~SigsegvMemory() override;

  Engine engine() const noexcept override { return Engine::sigsegv; }
  bool counts_dirty() const noexcept override { return true; }
  void pin(PageNumber first, std::size_t count) override;
  void unpin(PageNumber first, std::size_t count) noexcept override;

 protected:
  void begin_service() override;
  int map_zero(PageNumber first, std::size_t count) noexcept override;
  int map_present(PageNumber first, std::size_t count) noexcept override;
  // A write opens a page after its chunk was filled.
  int place_zeros(PageNumber first, std::size_t count) noexcept override {
    return map_zero(first, count);
  }
  // Reading a page that is closed for writing is never taken for a write.
  int prepare_unmapped(PageNumber, std::size_t) noexcept override { return 0; }
  void note_unarmed(PageNumber, std::size_t) noexcept override {}
  // Pages are closed until a fault opens them.
  bool kernel_has_mapped(PageNumber, std::size_t) noexcept override { return false; }
  int resolve_present(PageNumber page, bool is_write) noexcept override;
  int protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept override;
  void find_dirty(std::vector<PageNumber>& out) override;
  void put_back(const std::vector<PageNumber>& pages) override;
  int place_private(PageNumber first, std::size_t count,
                    const std::byte* content) noexcept override;
  void note_placed(PageNumber first, std::uint64_t pages) noexcept override;
  int find_own(PageNumber first, std::size_t count, std::uint64_t& mask) noexcept override;
  bool is_unwritten(PageNumber first, std::size_t count) noexcept override;
  bool may_drop_copies() noexcept override { return true; }
  std::size_t drop_equal(PageNumber first, std::size_t count) noexcept override;
  int unmap_shared(PageNumber first, std::size_t count) noexcept override;
  int place_unshared(PageNumber first, std::size_t count,
                     const std::byte* content) noexcept override;
  int remove_unshared(PageNumber first, std::size_t count) noexcept override;
  int freeze(FrozenChunk& frozen) noexcept override;
  int thaw(const FrozenChunk& frozen, std::uint64_t keep) noexcept override;
  int forget(const FrozenChunk& frozen) noexcept override;
  std::int64_t count_own(PageNumber first, std::size_t count) noexcept override;

 private:
  static constexpr std::size_t kGroupPages =
      64;  // one word of the dirty bitmap, one lock: one or more chunks
  static constexpr std::size_t kLocks = 64;
  std::atomic<std::uint64_t>& dirty_word(std::size_t group) const noexcept {
    assert(group * sizeof(std::uint64_t) < dirty_.size());
    return reinterpret_cast<std::atomic<std::uint64_t>*>(dirty_.data())[group];
  }
  std::atomic<std::uint64_t>& summary_word(std::size_t group) const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(summary_.data())[group / 64];
  }
  std::atomic<std::uint16_t>& pins(std::size_t chunk) const noexcept {
    assert(chunk * sizeof(std::uint16_t) < pins_.size());
    return reinterpret_cast<std::atomic<std::uint16_t>*>(pins_.data())[chunk];
  }
  std::uint64_t chunk_mask() const noexcept { return bits_below(chunk_pages()); }
  base::HandlerLock& lock_of(std::size_t group) noexcept { return locks_[group % kLocks]; }
  std::size_t drop_equal_of_chunk(PageNumber first, std::size_t count) noexcept;
  void join_islands();
  int protect(PageNumber first, std::size_t count, int access) noexcept;
  int map_file(int file, PageNumber first, std::size_t count, int access) noexcept;
  int open_for_writing(PageNumber first, std::size_t count) noexcept;
  int open_wider(PageNumber page) noexcept;
  void note_dirty(PageNumber first, std::size_t count) noexcept;
  std::uint64_t take_group(std::size_t group);

  int pagemap_ = -1;           // /proc/self/pagemap
  int mem_ = -1;               // /proc/self/mem: writes pages that are not accessible yet
  base::Reservation dirty_;    // one bit per page: open for writing, perhaps written
  base::Reservation summary_;  // one bit per group: a page of it is dirty
  base::Reservation pins_;     // one 16-bit count per chunk
  // Held across "note dirty, open" and across "take, protect": otherwise a page could be open but
  // not noted.
  base::HandlerLock locks_[kLocks];
};

}  // namespace vellum::region
