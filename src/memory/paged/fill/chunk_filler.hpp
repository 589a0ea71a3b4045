// memory/paged/fill/chunk_filler.hpp: fills chunks, wholly or in part: from the source, from the
// spill file, or with zeros.
//
// Signal context: all of it. It allocates nothing and takes only HandlerLocks. A `bool` that is
// false leaves the reason in `failure`; an `int` is 0 or errno.
//  - chunk_filler.cpp: whole chunks, from the source and from the spill file;
//  - chunk_filler_part.cpp: parts of chunks;
//  - chunk_filler_zeros.cpp: pages that are zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "memory/paged/fill/paged_state.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::region {

// What a fill needs of the parts above it.
class FillSupport {
 public:
  // Evictor::make_room().
  virtual std::size_t make_room(std::size_t pages) noexcept = 0;
  // VersionSharing::fill(). REQUIRES: the version's readers share its pages.
  virtual bool fill_shared(std::size_t index, std::size_t pages, store::ReadFailure& failure,
                           ChunkMapping mapping) noexcept = 0;

 protected:
  ~FillSupport() = default;
};

class ChunkFiller {
 public:
  // The references outlive the filler; the constructor uses none of them.
  ChunkFiller(PagedState& state, EngineHooks& engine, FillSupport& support) noexcept
      : state_(state), engine_(engine), support_(support) {}
  ChunkFiller(const ChunkFiller&) = delete;
  ChunkFiller& operator=(const ChunkFiller&) = delete;

  // Fills a chunk unless it is present; waits while another thread fills it. `written`: the page
  // that a write has accessed, in this chunk. After a partial fill, the chunk is present.
  bool fill(std::size_t index, store::ReadFailure& failure,
            std::optional<PageNumber> written = std::nullopt) noexcept;
  // Fills the page, and the rest of its chunk if that is likely to be accessed. The page is absent,
  // or its chunk is missing; otherwise nothing is done.
  bool fill_part(PageNumber page, bool is_write, store::ReadFailure& failure) noexcept;
  // Fills the absent pages of a chunk that is present. True if the chunk is missing.
  bool fill_rest(std::size_t index, store::ReadFailure& failure) noexcept;
  // For a caller that needs a chunk mapped, not only present. Counts as an access to the chunk.
  bool map_all(std::size_t index, store::ReadFailure& failure) noexcept;
  // Fills a chunk without mapping it. False: it stays missing. REQUIRES: the calling thread has
  // claimed it; it is whole within the size.
  bool prefetch(std::size_t index) noexcept;

  // Fills the pages of a chunk of which only one is mapped: private zeros for writing, else the
  // zero page. REQUIRES: claimed.
  int complete(std::size_t index, bool for_writing) noexcept;
  // Maps pages (one bit each): private content where `own` has a bit, base copies where
  // `base_copies` has one (written and noted), zero otherwise. REQUIRES: claimed; nothing is mapped
  // there.
  int show(PageNumber first, std::uint64_t pages, const std::byte* base_copy_content,
           std::uint64_t base_copies, const std::byte* own_content, std::uint64_t own) noexcept;

 private:
  // The pages that are filled of a claimed chunk: one bit per page.
  struct PartialFill {
    std::uint64_t wanted = 0;   // none of them is in memory
    std::uint64_t spilled = 0;  // those of them that the spill file has
    bool for_writing = false;   // a single page, which a write has accessed
  };
  // The result of reading a chunk's entries of the spill file: one bit per page.
  struct Unspilled {
    std::uint64_t base_copies = 0;  // pages with content in scratch.old
    std::uint64_t own = 0;          // pages with content in scratch.own
    std::uint64_t bare = 0;         // those of them whose committed content was not read
  };

  // chunk_filler.cpp
  void make_room_for(std::size_t index) noexcept;
  bool fill_from_source(std::size_t index, std::size_t pages, store::ReadFailure& failure,
                        ChunkMapping mapping) noexcept;
  int show_committed(PageNumber first, std::size_t pages, const std::byte* content,
                     ChunkMapping mapping) noexcept;
  bool fill_with_spill(std::size_t index, std::size_t pages, std::uint64_t spilled,
                       store::ReadFailure& failure) noexcept;
  bool load(std::size_t index, const PartialFill& part, store::ReadFailure& failure) noexcept;
  int show_found(PageNumber first, std::uint64_t wanted, const Scratch& scratch,
                 const Unspilled& found) noexcept;
  int show_for_writing(PageNumber page, const std::byte* base_copy_content) noexcept;
  bool read_committed_part(PageNumber first, std::uint64_t needed, Scratch& scratch,
                           Unspilled& found, store::ReadFailure& failure) noexcept;
  bool read_spilled(PageNumber first, std::uint64_t spilled, std::uint64_t whole, Scratch& scratch,
                    Unspilled& found, store::ReadFailure& failure) noexcept;
  void note_unspilled(std::size_t index, const Unspilled& found) noexcept;
  bool read_source(PageNumber first, std::size_t pages, std::byte* out, bool& zero,
                   store::ReadFailure& failure) noexcept;
  int place_own(PageNumber first, const std::byte* content, std::uint64_t own) noexcept;

  // chunk_filler_zeros.cpp
  bool fill_zero(std::size_t index, std::size_t pages, store::ReadFailure& failure) noexcept;
  bool fill_zero_for_writing(std::size_t index, PageNumber written, std::size_t pages,
                             store::ReadFailure& failure) noexcept;
  bool has_mapped_neighbour(std::size_t index) const noexcept;

  PagedState& state_;
  EngineHooks& engine_;
  FillSupport& support_;
};

}  // namespace vellum::region
