// memory/copies/memfd_backing.hpp: base copies in a memfd, for engines uffd and sigsegv.
//
// The alias is a shared mapping: patches in it show wherever the program has no private copy.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "memory/copies/backing.hpp"
#include "memory/paging/pager.hpp"

namespace vellum::region {

// A base of MemfdBacking, so that it exists before the alias is mapped.
class Memfd {
 public:
  // Throws Errc::out_of_memory.
  explicit Memfd(std::size_t capacity_bytes);
  ~Memfd();
  Memfd(const Memfd&) = delete;
  Memfd& operator=(const Memfd&) = delete;
  const int descriptor;
};

class MemfdBacking final : private Memfd, public Backing {
 public:
  // Reports every page to `pager`. Throws Errc::out_of_memory.
  MemfdBacking(std::size_t capacity_bytes, std::shared_ptr<Pager> pager);
  ~MemfdBacking() override;

  const std::shared_ptr<Pager>& pager() const noexcept { return pager_; }
  std::int64_t base_copy_pages() const noexcept {
    return base_copy_pages_.load(std::memory_order_relaxed);
  }
  // Pages of the memfd, with or without base copies.
  std::int64_t file_pages() const noexcept;

  // Maps base copies in advance: a commit's first access to a chunk's base copies then costs no
  // fault. The kernel maps the 64 KiB around an accessed page ("fault-around"). REQUIRES: all have
  // base copies.
  void map_around(format::PageNumber first, std::size_t count) const noexcept {
    for (std::size_t i = 0; i < count; i += 16) {
      assert(has_base_copy(first + i));
      static_cast<void>(*static_cast<const volatile std::byte*>(base_copy(first + i)));
    }
  }
  // Copies base copies out. 0 or errno. Async-signal-safe.
  int read(format::PageNumber first, std::span<std::byte> out) const noexcept;
  // By write(2), which is cheaper than faults in the alias. The kernel lets one thread write to a
  // memfd at a time; a thread that would wait adds new pages through the alias instead
  // (userfaultfd(2)), where that is permitted.
  int write(format::PageNumber first, std::span<const std::byte> bytes) noexcept override;
  // Unmaps base copies from the alias; they stay in memory. Pages that write() has mapped there
  // count twice in the resident size that tools show.
  void unmap_alias(format::PageNumber first, std::size_t count) const noexcept;
  // The second half of drop_base_copies(): frees their memory.
  void punch(format::PageNumber first, std::size_t count) noexcept;
  void drop_base_copies(format::PageNumber first, std::size_t count) noexcept override;

 private:
  void count(std::int64_t pages) noexcept override;
  int write_file(format::PageNumber first, std::span<const std::byte> bytes) noexcept;

  const std::shared_ptr<Pager> pager_;
  std::atomic<std::int64_t> base_copy_pages_{0};
  std::atomic<int> writers_{0};  // threads inside write()
  const int uffd_;               // of the alias; -1: none
};

}  // namespace vellum::region
