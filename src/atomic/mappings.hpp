// atomic/mappings.hpp: the mappings that a program has made of one file, all of which lie in one
// range of memory and may overlap.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace vellum::atomic {

class Mappings {
 public:
  bool empty() const noexcept { return all_.empty(); }
  bool contains(const void* address) const noexcept;
  // [begin, end) of each, of whole pages, in no order.
  const std::vector<std::pair<std::byte*, std::byte*>>& all() const noexcept { return all_; }
  // Lengths are rounded up to pages.
  void add(std::byte* begin, std::size_t length_bytes);
  // What munmap(2) takes, which may be a part. Of mappings of the same pages, only one goes: the
  // one that is meant, rather than another of which it is a part.
  void remove(std::byte* begin, std::size_t length_bytes);
  // False: there is none of this address and length.
  bool resize(std::byte* begin, std::size_t old_bytes, std::size_t new_bytes) noexcept;

 private:
  std::vector<std::pair<std::byte*, std::byte*>> all_;
};

}  // namespace vellum::atomic
