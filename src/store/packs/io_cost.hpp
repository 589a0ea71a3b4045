// store/packs/io_cost.hpp: the cost of writing, for reports.
#pragma once

#include <cstdint>

namespace vellum::store {

struct IoCost {
  std::uint64_t bytes_written = 0;
  std::uint32_t flushes = 0;
  std::uint64_t write_ns = 0, flush_ns = 0;
};

}  // namespace vellum::store
