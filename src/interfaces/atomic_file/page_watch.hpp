// interfaces/atomic_file/page_watch.hpp: the page tracker of an atomic file. The kernel reports
// written pages, and their lines are compared with the committed content.
//
// The committed content of a written page is kept as its *base copy*. Before its first write a page
// equals the file. A checkpoint changes only pages that commits have stored to, and these have base
// copies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory/reserve.hpp"
#include "format/redo.hpp"
#include "interfaces/atomic_file/medium.hpp"
#include "memory/cards/tracked_range.hpp"
#include "memory/kernel/private_pages.hpp"

namespace vellum::atomic_file {

class PageWatch {
 public:
  // `data`: a private mapping of the file of `capacity_bytes`, whole pages, not yet written to.
  PageWatch(std::byte* data, std::uint64_t capacity_bytes, const MediumFile& image);

  // Appends the pages below `size_bytes` that differ from their committed content, ascending, with
  // their changed lines. Reports them again until they are settled.
  void collect(std::uint64_t size_bytes, std::vector<cards::MarkedPage>& out);
  // Records that these spans are committed. REQUIRES: each is within a page.
  void settle(std::span<const format::RedoSpan> spans) noexcept;
  // Records that the file has been cut to `begin_bytes`.
  void forget(std::uint64_t begin_bytes, std::uint64_t end_bytes) noexcept;

 private:
  std::byte* base_copy(std::uint64_t page) const noexcept {
    return base_copies_.data() + page * format::kPageBytes;
  }
  void make_base_copy(std::uint64_t page);

  std::byte* data_;
  const MediumFile& image_;
  region::PrivatePages written_;
  base::Reservation base_copies_;
  base::Reservation has_base_copy_;        // one byte per page
  std::vector<format::PageNumber> found_;  // by the kernel, not yet settled
};

}  // namespace vellum::atomic_file
