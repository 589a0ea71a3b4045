#include "store/branch/checkpoint/depth_table.hpp"

#include <algorithm>

namespace vellum::store {

using format::MapEntry;
using format::PageNumber;

std::vector<std::uint8_t> DepthTable::lookup(const PageSource& last_checkpointed,
                                             std::span<const PageNumber> pages) {
  std::vector<std::uint8_t> out;
  out.reserve(pages.size());
  std::uint64_t number = UINT64_MAX;
  const Chunk* chunk = nullptr;
  for (const PageNumber page : pages) {
    if (page / kPagesPerChunk != number) {
      number = page / kPagesPerChunk;
      if (chunks_.size() >= kMaxChunks && !chunks_.contains(number)) chunks_.clear();
      auto& held = chunks_[number];
      if (held == nullptr) {
        auto fresh = std::make_unique<Chunk>();
        last_checkpointed.depths(number * kPagesPerChunk, *fresh);
        held = std::move(fresh);
      }
      chunk = held.get();
    }
    assert(chunk != nullptr);
    out.push_back((*chunk)[page % kPagesPerChunk]);
  }
  return out;
}

void DepthTable::update(std::span<const MapEntry> entries) {
  for_each_newest(entries, [this](const MapEntry& e, PageNumber first, PageNumber end) {
    for (PageNumber page = first; page < end;) {
      const std::uint64_t number = page / kPagesPerChunk;
      const PageNumber stop = std::min(end, (number + 1) * kPagesPerChunk);
      const auto at = chunks_.find(number);
      if (at != chunks_.end() && at->second != nullptr) {
        std::fill(at->second->begin() + static_cast<std::ptrdiff_t>(page % kPagesPerChunk),
                  at->second->begin() + static_cast<std::ptrdiff_t>(stop - number * kPagesPerChunk),
                  e.depth);
      }
      page = stop;
    }
  });
}

}  // namespace vellum::store
