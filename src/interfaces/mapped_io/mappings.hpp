// interfaces/mapped_io/mappings.hpp: a program's mappings of one file, which are all in one range
// of memory and may overlap.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace vellum::mapped_io {

class Mappings {
 public:
  bool empty() const noexcept { return all_.empty(); }
  bool contains(const void* address) const noexcept;
  // [begin, end) of each mapping, in whole pages, in no order.
  const std::vector<std::pair<std::byte*, std::byte*>>& all() const noexcept { return all_; }
  // Lengths are rounded up to pages. REQUIRES: they are not 0.
  void add(std::byte* begin, std::size_t length_bytes);
  // Removes the range of a munmap(2), perhaps a part of a mapping. Of several mappings of the same
  // pages only one is removed: the exact match, rather than another that contains it.
  void remove(std::byte* begin, std::size_t length_bytes);
  // False: there is none with this address and length.
  bool resize(std::byte* begin, std::size_t old_bytes, std::size_t new_bytes) noexcept;

 private:
  std::vector<std::pair<std::byte*, std::byte*>> all_;
};

}  // namespace vellum::mapped_io
