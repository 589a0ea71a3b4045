// atomic/page_watch.hpp: the page tracker of an atomic file: the kernel says which pages were
// written, and their lines are compared with what was committed.
//
// The committed content of a page that has been written is kept as its *twin*. Before its first
// write a page is as in the file; and a checkpoint changes only pages that commits have stored to,
// which have twins.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "atomic/medium.hpp"
#include "base/reserve.hpp"
#include "cards/tracked_range.hpp"
#include "format/redo.hpp"
#include "region/kernel/private_pages.hpp"

namespace vellum::atomic {

class PageWatch {
 public:
  // `data`: a private mapping of the file of `capacity_bytes`, which nobody has written to yet.
  PageWatch(std::byte* data, std::uint64_t capacity_bytes, const MediumFile& image);

  // Appends the pages below `size_bytes` that differ from their committed content, ascending, with
  // the lines that do. What was found is found again, until it is settled.
  void collect(std::uint64_t size_bytes, std::vector<cards::MarkedPage>& out);
  // These are committed now.
  void settle(std::span<const format::RedoRun> runs) noexcept;
  // The file has been cut to `begin_bytes`.
  void forget(std::uint64_t begin_bytes, std::uint64_t end_bytes) noexcept;

 private:
  std::byte* twin(std::uint64_t page) const noexcept {
    return twins_.data() + page * format::kPageBytes;
  }
  void make_twin(std::uint64_t page);

  std::byte* data_;
  const MediumFile& image_;
  region::PrivatePages written_;
  base::Reservation twins_;
  base::Reservation has_twin_;             // a byte a page
  std::vector<format::PageNumber> found_;  // by the kernel, and not settled
};

}  // namespace vellum::atomic
