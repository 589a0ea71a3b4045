// store/packs/io_cost.hpp: the cost of writing, for reports.
#pragma once

#include <cstdint>

namespace vellum::store {

struct IoCost {
  std::uint64_t bytes_written = 0;
  std::uint32_t flushes = 0;
  std::uint64_t write_ns = 0, flush_ns = 0;
};

inline IoCost operator+(const IoCost& a, const IoCost& b) noexcept {
  return {a.bytes_written + b.bytes_written, a.flushes + b.flushes, a.write_ns + b.write_ns,
          a.flush_ns + b.flush_ns};
}
inline IoCost operator-(const IoCost& a, const IoCost& b) noexcept {
  return {a.bytes_written - b.bytes_written, a.flushes - b.flushes, a.write_ns - b.write_ns,
          a.flush_ns - b.flush_ns};
}

}  // namespace vellum::store
