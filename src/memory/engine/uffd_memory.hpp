// memory/engine/uffd_memory.hpp: engine uffd (userfaultfd).
//
// The kernel tracks writes (asynchronous write protection), or the region's log does, where the
// kernel only reports the first write to each page (synchronous; write_log.hpp).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "memory/engine/write_log.hpp"
#include "memory/kernel/fault_thread.hpp"
#include "memory/kernel/kernel.hpp"
#include "memory/kernel/support.hpp"
#include "memory/paged/paged_memory.hpp"

namespace vellum::region {

class UffdMemory final : public PagedMemory {
 public:
  // Uses the best tracking that the kernel offers and that is no better than `best`.
  UffdMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
             Tracking best = Tracking::asynchronous);
  ~UffdMemory() override;

  Engine engine() const noexcept override { return Engine::uffd; }
  bool serves_system_calls() const noexcept override { return serves_kernel_; }
  bool counts_dirty() const noexcept override { return log_.has_value(); }
  // A present page needs no pin where the kernel itself disarms pages, in system calls, too.
  void pin(PageNumber first, std::size_t count) override;
  void unpin(PageNumber first, std::size_t count) noexcept override;

 protected:
  void begin_service() override;
  int map_zero(PageNumber first, std::size_t count) noexcept override;
  int place_zeros(PageNumber first, std::size_t count) noexcept override;
  int map_present(PageNumber first, std::size_t count) noexcept override;
  int prepare_unmapped(PageNumber first, std::size_t count) noexcept override;
  void note_unarmed(PageNumber first, std::size_t count) noexcept override {
    if (log_) log_->note(first, count);
  }
  bool kernel_has_mapped(PageNumber first, std::size_t count) noexcept override;
  int resolve_present(PageNumber page, bool is_write) noexcept override;
  int protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept override;
  void find_dirty(std::vector<PageNumber>& out) override;
  void put_back(const std::vector<PageNumber>& pages) override;
  int place_private(PageNumber first, std::size_t count,
                    const std::byte* content) noexcept override;
  // The kernel itself marks a placed page as written, or place_private() has noted it.
  void note_placed(PageNumber, std::uint64_t) noexcept override {}
  int find_own(PageNumber first, std::size_t count, std::uint64_t& mask) noexcept override;
  bool is_unwritten(PageNumber first, std::size_t count) noexcept override;
  bool may_drop_copies() noexcept override;
  std::size_t drop_equal(PageNumber first, std::size_t count) noexcept override;
  FaultResult on_other_fault(PageNumber page, const Fault& fault) noexcept override;
  int unmap_shared(PageNumber first, std::size_t count) noexcept override;
  int place_unshared(PageNumber first, std::size_t count,
                     const std::byte* content) noexcept override;
  int remove_unshared(PageNumber first, std::size_t count) noexcept override;
  int freeze(FrozenChunk& frozen) noexcept override;
  int thaw(const FrozenChunk& frozen, std::uint64_t keep) noexcept override;
  int forget(const FrozenChunk& frozen) noexcept override;
  std::int64_t count_own(PageNumber first, std::size_t count) noexcept override;

 private:
  static constexpr std::size_t kScanRanges = 8192;
  void close_descriptors() noexcept;
  void start_log();
  template <typename Place>
  int place(PageNumber first, std::size_t count, Place place) noexcept;
  int map_there(PageNumber page, bool is_write) noexcept;
  void scan_tables(std::size_t first_table, std::size_t end_table, std::vector<PageNumber>& out);
  void append_written(PageNumber first, PageNumber end, std::vector<PageNumber>& out) const;

  // uffd_copies.cpp
  std::uint64_t find_equal(PageNumber first, std::size_t count) noexcept;
  void show_dropped(PageNumber first, std::uint64_t pages) noexcept;

  void open_again(PageNumber first, std::size_t count) noexcept;

  std::atomic<bool> stay_closed_{false};       // opening pages failed once: no page is closed again
  std::atomic<std::uint32_t> windows_{0};      // how often pages were closed for writing
  std::unique_ptr<FaultThread> fault_thread_;  // null: faults are signals
  bool serves_kernel_ = false;
  const bool kernel_maps_armed_ = kernel_support().maps_armed;
  int uffd_ = -1;
  int pagemap_ = -1;
  std::vector<ScanRange> ranges_;
  std::optional<WriteLog> log_;             // nothing: the kernel tracks writes
  std::vector<format::PageRange> written_;  // of find_dirty()
};

}  // namespace vellum::region
