// region/encode/encoder_slice.hpp: the state shared by the source files of Encoder; internal.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes/codec.hpp"
#include "format/records/delta.hpp"
#include "memory/memory.hpp"
#include "region/encode/encoder.hpp"
#include "store/packs/encode/block_encoder.hpp"

namespace vellum::region {

// The captured pages of one slice: their encoding so far, and the pages to be stored whole, whose base
// copies have the recorded content.
struct Encoder::Captured {
  store::PageWrites writes;
  std::vector<format::PageNumber> whole;  // ascending
  // Those of `whole` without a base copy, ascending, and their content one after the other.
  std::vector<format::PageNumber> spilled_whole;
  std::vector<std::byte> spilled_content;

  const std::byte* content(format::PageNumber page, const Backing& backing) const {
    const auto at = std::lower_bound(spilled_whole.begin(), spilled_whole.end(), page);
    if (at == spilled_whole.end() || *at != page) return backing.base_copy(page);
    assert(spilled_content.size() == spilled_whole.size() * kPageBytes);
    return spilled_content.data() +
           static_cast<std::size_t>(at - spilled_whole.begin()) * kPageBytes;
  }
};

// The pages of one task of a thread, and the data that undo() needs for them.
struct Encoder::Slice {
  Captured captured;                      // between capture and pack
  format::DeltaBatch old_bytes;           // the overwritten bytes of base copies
  std::vector<format::PageNumber> fresh;  // pages that had no base copy
  // Pages whose base copies were overwritten without keeping the old content.
  std::vector<format::PageNumber> reload;
  std::vector<format::PageNumber> taken;  // from the spill file
  std::uint64_t changed = 0;
};

struct Encoder::Worker {
  explicit Worker(const format::Encoding& encoding) : blocks(encoding) {}

  base::Compressor compressor;
  store::BlockEncoder blocks;
  std::vector<std::byte> gathered;  // the content of a block of non-adjacent pages
  std::vector<std::byte> page = std::vector<std::byte>(kPageBytes);
  std::vector<format::PageNumber> fresh_whole;  // to be stored whole, and without a base copy yet
  std::vector<format::PageNumber> merged;
  alignas(8) SpillFile::Buffer record;
};

// Keeps the chunks of pages from eviction. REQUIRES: the pages ascend.
class Held {
 public:
  // The list of pages may change while this object lives.
  Held(RegionMemory& memory, std::span<const format::PageNumber> pages) : memory_(memory) {
    assert(std::ranges::is_sorted(pages));
    for (const format::PageNumber page : pages) {
      if (!held_.empty() && memory_.chunk_of(held_.back()) == memory_.chunk_of(page)) continue;
      held_.push_back(page);
    }
    for (const format::PageNumber page : held_) memory_.hold(page, 1);
  }
  ~Held() {
    for (const format::PageNumber page : held_) memory_.release(page, 1);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  RegionMemory& memory_;
  std::vector<format::PageNumber> held_;  // one page of each chunk
};

// The same for one page. Allocates nothing: it serves the undo of a commit that lacked memory.
class HeldPage {
 public:
  HeldPage(RegionMemory& memory, format::PageNumber page) noexcept : memory_(memory), page_(page) {
    memory_.hold(page_, 1);
  }
  ~HeldPage() { memory_.release(page_, 1); }
  HeldPage(const HeldPage&) = delete;
  HeldPage& operator=(const HeldPage&) = delete;

 private:
  RegionMemory& memory_;
  const format::PageNumber page_;
};

}  // namespace vellum::region
