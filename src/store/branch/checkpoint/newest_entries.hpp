// store/branch/checkpoint/newest_entries.hpp: what the entries of a run say of each page first.
#pragma once

#include <algorithm>
#include <span>

#include "format/wire/types.hpp"

namespace vellum::store {

// Calls body(entry, first, end) with the newest entry of the pages from `first` to `end`, for all
// pages that `entries` name. The rest of a chain lies below its first entry. REQUIRES: run order: by
// page, newest of a chain first.
template <typename Body>
void for_each_newest(std::span<const format::MapEntry> entries, Body body) {
  format::PageNumber end = 0;
  for (const format::MapEntry& e : entries) {
    const format::PageNumber first = std::max(e.page, end);
    end = e.page + e.count;
    if (first < end) body(e, first, end);
  }
}

}  // namespace vellum::store
