// A RegionMemory without a store: what has never been committed is zero.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "region/memory.hpp"
#include "support/engines.hpp"

namespace vellum::region::test {

using vellum::test::engine_test_name;

inline constexpr std::uint64_t kMiB = 1u << 20;

inline std::unique_ptr<RegionMemory> make_memory(Engine engine, std::uint64_t size_bytes,
                                                 std::uint64_t capacity_bytes,
                                                 bool writable = true) {
  MemoryOptions options;
  options.size_bytes = size_bytes;
  options.capacity_bytes = (capacity_bytes + kSlotBytes - 1) / kSlotBytes * kSlotBytes;
  options.writable = writable;
  return RegionMemory::create(engine, options, nullptr);
}

class MemoryTest : public vellum::test::EngineTest {
 protected:
  std::unique_ptr<RegionMemory> make(std::uint64_t size_bytes, std::uint64_t capacity_bytes = 0) {
    return make_memory(GetParam(), size_bytes, std::max(size_bytes, capacity_bytes));
  }

  static std::vector<PageNumber> collect(RegionMemory& memory) {
    std::vector<PageNumber> pages;
    memory.collect_dirty(pages);
    EXPECT_TRUE(std::is_sorted(pages.begin(), pages.end()));
    EXPECT_EQ(std::adjacent_find(pages.begin(), pages.end()), pages.end()) << "a page twice";
    return pages;
  }

  static bool contains(const std::vector<PageNumber>& pages, PageNumber page) {
    return std::binary_search(pages.begin(), pages.end(), page);
  }

  static std::byte* page_at(RegionMemory& memory, PageNumber page) {
    return memory.data() + page * kPageBytes;
  }

  static bool all_bytes(const std::byte* at, std::size_t length_bytes, int value) {
    return std::all_of(at, at + length_bytes,
                       [value](std::byte b) { return b == static_cast<std::byte>(value); });
  }

  // What a commit does to the pages it found: their twins follow.
  static void commit(RegionMemory& memory) {
    for (const PageNumber page : collect(memory)) {
      if (all_bytes(page_at(memory, page), kPageBytes, 0) && !memory.backing().has_twin(page))
        continue;
      ASSERT_EQ(memory.backing().write(page, {page_at(memory, page), kPageBytes}), 0);
      memory.backing().mark_twins(page, 1);
    }
  }
};

}  // namespace vellum::region::test
