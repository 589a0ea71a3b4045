// region/encode/encoder_pack.cpp: pages to be stored whole are looked up in the store, or compressed in
// blocks.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <utility>

#include "region/encode/encoder.hpp"
#include "region/encode/encoder_slice.hpp"
#include "store/packs/encode/block_encoder.hpp"

namespace vellum::region {
namespace {

using format::PageNumber;

// A commit of one slice may still have work for several threads: blocks to compress, about 100 us
// each.
constexpr std::size_t kParallelBlocks = 3;
constexpr std::size_t kBlocksPerThread = 4;

}  // namespace

// The captured content is in the base copies. A chunk whose base copies are newer than the source is
// not evicted, but an eviction unmaps the base copies temporarily to check the pages. The hold
// prevents that.
void Encoder::pack_slice(Slice& slice, Worker& worker, store::BranchWriter::Commit& commit) {
  Captured& captured = slice.captured;
  std::optional<Held> held(std::in_place, memory_, captured.whole);
  const store::Dedup* const dedup = commit.dedup();
  if (dedup != nullptr) {
    // Compares the recorded content: the base copies.
    dedup->find(
        captured.whole,
        [&](std::size_t i) { return captured.content(captured.whole[i], backing_); },
        captured.writes.found);
  }
  pack_blocks(captured, worker, dedup != nullptr);
  held.reset();
  commit.add(std::move(captured.writes));
  captured = {};
}

void Encoder::pack_blocks(Captured& captured, Worker& worker, bool note) {
  std::span<const PageNumber> left = captured.whole;
  auto& blocks = captured.writes.blocks;
  const std::size_t at_once = slices_.size() == 1 ? kBlocksPerThread * workers_.size() : 1;
  std::vector<std::span<const PageNumber>> parts;
  while (!left.empty()) {
    const std::size_t block_pages = worker.blocks.pages();
    parts.clear();
    while (!left.empty() && parts.size() < at_once)
      parts.push_back(store::next_block(left, block_pages));
    if (parts.size() < kParallelBlocks) {
      for (const auto& part : parts) blocks.push_back(compress(part, captured, worker, note));
      continue;
    }
    const std::size_t first = blocks.size();
    blocks.resize(first + parts.size());
    pool_.parallel_for(parts.size(), [&](std::size_t i, std::size_t number) {
      blocks[first + i] = compress(parts[i], captured, this->worker(number), note);
    });
  }
}

store::PageBlock Encoder::compress(std::span<const PageNumber> pages, const Captured& captured,
                                   Worker& worker, bool note) {
  assert(!pages.empty() && std::ranges::is_sorted(pages));
  const std::size_t raw_bytes = pages.size() * kPageBytes;
  const std::byte* raw = backing_.base_copy(pages.front());
  if (pages.back() - pages.front() + 1 != pages.size() || !captured.spilled_whole.empty()) {
    worker.gathered.resize(raw_bytes);
    for (std::size_t i = 0; i < pages.size(); ++i) {
      std::memcpy(worker.gathered.data() + i * kPageBytes, captured.content(pages[i], backing_),
                  kPageBytes);
    }
    raw = worker.gathered.data();
  }
  auto payload = worker.blocks.encode(worker.compressor, {raw, raw_bytes});
  store::PageBlock block{
      {pages.begin(), pages.end()}, payload.codec, {}, {}, std::move(payload.hash)};
  if (note) block.noted = store::Dedup::worth_noting({raw, raw_bytes}, payload.stored.size());
  block.stored = std::move(payload.stored);
  return block;
}

}  // namespace vellum::region
