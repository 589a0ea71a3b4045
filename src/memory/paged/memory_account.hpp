// memory/paged/memory_account.hpp: how much memory and spill file a region uses, for its pager and
// for memory_use().
//
// Pages are counted as they are filled and evicted. Pages that the kernel adds by itself (a first
// write makes a private copy) are found by counting, now and then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vellum/region.hpp>

#include "memory/paged/fill/paged_state.hpp"
#include "memory/paging/pager.hpp"

namespace vellum::region {

class Evictor;
class VersionSharing;

class MemoryAccount final : public Pageable {
 public:
  // The references outlive the object; the constructor uses none of them.
  MemoryAccount(PagedState& state, EngineHooks& engine, Evictor& evictor,
                VersionSharing& sharing) noexcept
      : state_(state), engine_(engine), evictor_(evictor), sharing_(sharing) {}
  // The pages no longer count at the pager.
  ~MemoryAccount() override;
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  MemoryUse use() noexcept;  // counts

  // Pageable.
  std::size_t make_room(std::size_t pages) noexcept override;
  void measure() noexcept override;
  std::int64_t unreported_pages() const noexcept override;
  void tidy() noexcept override;

 private:
  void move_spilled(PageNumber page) noexcept;

  PagedState& state_;
  EngineHooks& engine_;
  Evictor& evictor_;
  VersionSharing& sharing_;
  std::mutex measuring_;
  std::int64_t tidied_ns_ = 0;  // the pager's thread only
};

}  // namespace vellum::region
