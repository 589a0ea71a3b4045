#include "store/branch/page_copy.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "store/branch/checkpoint/page_difference.hpp"

namespace vellum::store {

std::uint64_t add_pages(BranchWriter::Commit& commit, const format::Encoding& encoding,
                        const PageSource& source, const PageSource* before,
                        std::span<const format::PageNumber> pages) {
  assert(std::ranges::is_sorted(pages));
  std::uint64_t written = 0;
  for (std::size_t at = 0; at < pages.size(); at += kPagesOfAPiece) {
    const auto some = pages.subspan(at, std::min(kPagesOfAPiece, pages.size() - at));
    auto pieces = page_writes(encoding, source, before, some);
    written += pages_in(pieces);
    for (PageWrites& piece : pieces) commit.add(std::move(piece));
  }
  return written;
}

}  // namespace vellum::store
