#include "store/branch/checkpoint/page_difference.hpp"

#include <algorithm>
#include <cassert>

#include "base/memory/zeros.hpp"
#include "store/packs/encode/block_encoder.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageNumber;

namespace {

class PageComparer {
 public:
  PageComparer(const format::Encoding& encoding, const PageSource& source, const PageSource* before)
      : encoding_(encoding), source_(source), before_(before) {}

  PageWrites piece(std::span<const PageNumber> pages) {
    PageWrites out;
    PageBlock block;
    std::vector<std::byte> raw;
    const std::size_t block_pages = encoding_.block_bytes / kPageBytes;
    assert(block_pages >= 1);
    std::vector<std::byte> now(kPageBytes), old(kPageBytes);
    for (const PageNumber page : pages) {
      source_.read(page, 1, now.data());
      if (before_ != nullptr) before_->read(page, 1, old.data());
      if (now == old) continue;
      if (base::is_zero(now)) {
        out.zeros.push_back(page);
        continue;
      }
      const bool small = out.deltas.add_difference(page, old.data(), now.data()) &&
                         out.deltas.last_cost_bytes() <= kMaxDeltaCostBytes;
      if (small) continue;
      out.deltas.pop_back();
      block.pages.push_back(page);
      raw.insert(raw.end(), now.begin(), now.end());
      if (block.pages.size() == block_pages) pack(block, raw, out);
    }
    if (!block.pages.empty()) pack(block, raw, out);
    return out;
  }

 private:
  void pack(PageBlock& block, std::vector<std::byte>& raw, PageWrites& out) {
    assert(raw.size() == block.pages.size() * kPageBytes);
    auto payload = BlockEncoder(encoding_).encode(compressor_, raw);
    block.codec = payload.codec;
    block.stored = std::move(payload.stored);
    block.hash = std::move(payload.hash);
    out.blocks.push_back(std::move(block));
    block = {};
    raw.clear();
  }

  const format::Encoding& encoding_;
  const PageSource& source_;
  const PageSource* const before_;
  base::Compressor compressor_;
};

}  // namespace

std::vector<PageWrites> page_writes(const format::Encoding& encoding, const PageSource& source,
                                    const PageSource* before, std::span<const PageNumber> pages) {
  assert(std::ranges::is_sorted(pages));
  PageComparer comparer(encoding, source, before);
  std::vector<PageWrites> out;
  for (std::size_t at = 0; at < pages.size(); at += kPagesOfAPiece)
    out.push_back(comparer.piece(pages.subspan(at, std::min(kPagesOfAPiece, pages.size() - at))));
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
