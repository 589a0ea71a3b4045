// cli/history/change_stat.hpp: the differences of two versions, by parts of the region.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <vellum/store.hpp>

#include "cli/terminal/output.hpp"

namespace vellum::cli {

struct ChangedPart {
  std::uint64_t offset_bytes = 0;
  std::uint64_t pages_different = 0;
  std::uint64_t bytes_different = 0;
};

struct ChangeStat {
  std::uint64_t a_bytes = 0, b_bytes = 0;  // of the regions
  std::uint64_t part_bytes = 0;            // a power of two of pages; the last part may have fewer
  DiffTotals totals;
  std::vector<ChangedPart> parts;  // ascending, only those with a difference: at most 32
};

// Compares two versions of `store`, given by their full names. `visit` gets each range that
// differs.
ChangeStat change_stat(const Store& store, const std::string& a, const std::string& b,
                       const std::function<void(const ByteRange&)>& visit = nullptr);

// The part's bytes: the last one of a region may have fewer than the others.
std::uint64_t length_of(const ChangeStat& stat, const ChangedPart& part);

// Prints a row for each part, with a bar, as `git diff --stat` does for each file. Without
// differences there is no row.
void print_parts(Output& out, const ChangeStat& stat);

// "part_bytes" and "parts": objects with "offset", "length", "pages_different", "bytes_different".
Json parts_json(const ChangeStat& stat);

}  // namespace vellum::cli
