// cli/top/sample.hpp: the current counters of the regions of running processes.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "memory/statistics/layout.hpp"

namespace vellum::cli {

// Current bytes and pages, except for the backlog, which is that of the last commit; and counts
// since the region was opened.
struct RegionCounts {
  std::uint64_t region_bytes = 0, resident_bytes = 0, spilled_bytes = 0;
  std::uint64_t backlog_bytes = 0;
  // In memory and written since the last commit; nothing: only the process itself knows.
  std::optional<std::uint64_t> dirty_pages;
  std::uint64_t commits = 0, pages_dirty = 0, pages_changed = 0, bytes_written = 0;
  std::uint64_t commit_ns = 0, flush_ns = 0, spill_written_bytes = 0;
  std::uint64_t chunks_in = 0, chunks_out = 0;
  std::array<std::uint64_t, region::statistics::kFaultKinds> faults{};
};

struct RegionSample {
  pid_t process = 0;
  std::string program;
  std::string store, version;
  bool writable = false;
  const char* engine = "";
  std::uint64_t id = 0;  // of this region among all regions of the process
  RegionCounts counts;
};

// Every region of every process that this user may inspect, by process and name. `process`: only of
// this one; 0: of all. `store`: only of this directory; empty: of all. The data of the processes is
// untrusted: numbers may be arbitrary, and text may contain any byte except zero.
std::vector<RegionSample> sample_regions(pid_t process, const std::string& store);

}  // namespace vellum::cli
