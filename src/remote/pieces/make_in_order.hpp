// remote/pieces/make_in_order.hpp: fetches concurrently and consumes in order.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

#include "store/stream/ordered_work.hpp"

namespace vellum::remote {

// Calls make(i) for each i below `count` in `threads` threads, and take(i, its result) in order,
// one at a time, in any of them. At most 2 * threads results are in memory. With one thread, the
// caller does everything. After each submission, calls `report_progress` in the caller's thread.
// Rethrows the first exception of a step. REQUIRES: threads > 0.
template <typename Make, typename Take, typename ReportProgress>
void make_in_order(std::size_t threads, std::size_t count, const Make& make, const Take& take,
                   const ReportProgress& report_progress) {
  assert(threads > 0);
  struct MadeResult {
    std::size_t index = 0;
    decltype(make(0)) made;
  };
  std::vector<MadeResult> slots(2 * threads);
  store::OrderedWork work(
      threads == 1 ? 0 : std::min(threads, count), slots.size(),
      {[&](std::size_t slot, std::size_t) { slots[slot].made = make(slots[slot].index); },
       [&](std::size_t slot) {
         auto made = std::exchange(slots[slot].made, {});
         take(slots[slot].index, made);
       }});
  for (std::size_t i = 0; i < count; ++i) {
    slots[work.free_slot()].index = i;
    work.submit();
    report_progress();
  }
  work.finish();
  report_progress();
}

}  // namespace vellum::remote
