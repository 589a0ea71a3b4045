#include "store/branch/checkpoint/page_difference.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/memory/zeros.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageNumber;

PageDifference::PageDifference(const format::Encoding& encoding, base::Compressor& compressor,
                               std::size_t block_pages)
    : compressor_(compressor), encoder_(encoding), block_pages_(block_pages) {
  assert(block_pages >= 1);
}

void PageDifference::add(PageNumber page, const std::byte* before, const std::byte* now) {
  if (base::is_zero({now, kPageBytes})) {
    if (before != nullptr && !base::is_zero({before, kPageBytes})) out_.zeros.push_back(page);
    return;
  }
  if (!out_.deltas.add_difference(page, before, now)) return;
  if (out_.deltas.last_cost_bytes() <= kMaxDeltaCostBytes) return;
  out_.deltas.pop_back();
  pages_.push_back(page);
  raw_.insert(raw_.end(), now, now + kPageBytes);
  if (pages_.size() == block_pages_) pack();
}

void PageDifference::pack() {
  assert(raw_.size() == pages_.size() * kPageBytes);
  auto payload = encoder_.encode(compressor_, raw_);
  PageBlock& block = out_.blocks.emplace_back();
  block.pages = std::exchange(pages_, {});
  block.codec = payload.codec;
  block.stored = std::move(payload.stored);
  block.hash = std::move(payload.hash);
  raw_.clear();
}

PageWrites PageDifference::take() {
  if (!pages_.empty()) pack();
  return std::exchange(out_, {});
}

std::vector<PageWrites> page_writes(const format::Encoding& encoding, const PageSource& source,
                                    const PageSource* before, std::span<const PageNumber> pages) {
  assert(std::ranges::is_sorted(pages));
  base::Compressor compressor;
  PageDifference difference(encoding, compressor, encoding.block_bytes / kPageBytes);
  std::vector<PageWrites> out;
  std::vector<std::byte> now(kPageBytes), old(kPageBytes);
  for (std::size_t at = 0; at < pages.size(); at += kPagesOfAPiece) {
    for (const PageNumber page : pages.subspan(at, std::min(kPagesOfAPiece, pages.size() - at))) {
      source.read(page, 1, now.data());
      if (before != nullptr) before->read(page, 1, old.data());
      difference.add(page, old.data(), now.data());
    }
    out.push_back(difference.take());
  }
  return out;
}

std::uint64_t pages_in(const std::vector<PageWrites>& pieces) {
  std::uint64_t pages = 0;
  for (const PageWrites& piece : pieces) {
    pages += piece.deltas.pages().size() + piece.zeros.size();
    for (const PageBlock& block : piece.blocks) pages += block.pages.size();
  }
  return pages;
}

}  // namespace vellum::store
