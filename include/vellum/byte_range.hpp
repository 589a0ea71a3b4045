// vellum/byte_range.hpp: a range of bytes of a region or of a version.
#ifndef VELLUM_BYTE_RANGE_HPP
#define VELLUM_BYTE_RANGE_HPP

#include <cstdint>

namespace vellum {

struct ByteRange {
  std::uint64_t offset_bytes = 0;
  std::uint64_t length_bytes = 0;
};

}  // namespace vellum

#endif  // VELLUM_BYTE_RANGE_HPP
