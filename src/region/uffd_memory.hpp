// region/uffd_memory.hpp: engine uffd (userfaultfd).
#pragma once

#include <memory>
#include <vector>

#include "region/kernel.hpp"
#include "region/memory.hpp"

namespace vellum::region {

class UffdMemory final : public RegionMemory {
 public:
  UffdMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source);
  ~UffdMemory() override;

  Engine engine() const noexcept override { return Engine::uffd; }
  void collect_dirty(std::vector<PageNumber>& out) override;
  void discard(const std::vector<PageNumber>& pages) override;
  // A present page needs nothing more: the kernel resolves write protection in a system call by
  // itself.
  void pin(PageNumber, std::size_t) override {}
  void unpin(PageNumber, std::size_t) noexcept override {}
  void start() override;

 protected:
  int fault_signal() const noexcept override;
  int map_zero(PageNumber first, std::size_t count) noexcept override;
  int map_present(PageNumber first, std::size_t count) noexcept override;
  int resolve_present(PageNumber page, bool is_write) noexcept override;
  int protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept override;

 private:
  static constexpr std::size_t kScanRanges = 8192;
  void close_descriptors() noexcept;
  void scan_slots(std::size_t first_slot, std::size_t end_slot, std::vector<PageNumber>& out);
  void append_written(PageNumber first, PageNumber end, std::vector<PageNumber>& out) const;

  int uffd_ = -1;
  int pagemap_ = -1;
  std::vector<ScanRange> ranges_;
};

}  // namespace vellum::region
