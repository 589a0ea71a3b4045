// A RegionMemory without a store: pages that were never committed are zero.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/temp_directory.hpp"
#include "memory/engine/engine.hpp"
#include "store/catalog/store_directory.hpp"
#include "support/engines.hpp"

namespace vellum::region::test {

using vellum::test::engine_test_name;

inline constexpr std::uint64_t kMiB = 1u << 20;
inline constexpr std::size_t kChunkBytes = kDefaultChunkBytes,
                             kChunkPages = kChunkBytes / kPageBytes;

// The image of a branch that has no commit, in a store of its own.
inline std::shared_ptr<store::ImageFile> make_image(std::uint64_t size_bytes) {
  struct ImageOwner {  // the image's store and branch
    vellum::test::TempDirectory directory{vellum::test::memory_directory()};
    std::shared_ptr<store::StoreDirectory> core;
    std::unique_ptr<store::ImageFile> image;
  };
  auto owner = std::make_shared<ImageOwner>();
  format::Superblock small;
  small.journal_half_bytes = 64u << 10;
  owner->core = store::StoreDirectory::create(base::posix_fs(), owner->directory / "store", small);
  owner->core->create_branch("main", size_bytes, 0);
  const auto head = store::resolve_version(*owner->core, "main");
  const auto pages = store::PageSource::open(*owner->core, head.version, {}, "main");
  owner->image = store::ImageFile::open(*owner->core, "main", head.version, *pages, "");
  return {owner, owner->image.get()};
}

inline std::unique_ptr<RegionMemory> make_memory(Engine engine, std::uint64_t size_bytes,
                                                 std::uint64_t capacity_bytes,
                                                 bool writable = true) {
  MemoryOptions options;
  options.size_bytes = size_bytes;
  options.capacity_bytes = (capacity_bytes + kTableBytes - 1) / kTableBytes * kTableBytes;
  options.writable = writable;
  if (engine == Engine::mapped && writable) {
    options.image = make_image(size_bytes);
  }
  return make_region_memory(engine, options, nullptr);
}

class MemoryTest : public vellum::test::EngineTest {
 protected:
  std::unique_ptr<RegionMemory> make(std::uint64_t size_bytes, std::uint64_t capacity_bytes = 0) {
    return make_memory(GetParam(), size_bytes, std::max(size_bytes, capacity_bytes));
  }

  // The pages that are found if no page was written after `written`.
  std::vector<PageNumber> found_again(const std::vector<PageNumber>& written) const {
    const bool again = vellum::test::finds_written_pages_again(GetParam());
    return again ? written : std::vector<PageNumber>();
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

  // Updates the base copies of the dirty pages, as a commit does.
  static void commit(RegionMemory& memory) {
    const auto dirty = collect(memory);
    FileBehind* const file = memory.file_behind();
    if (file != nullptr) file->prepare_commit(dirty);
    for (const PageNumber page : dirty) {
      if (all_bytes(page_at(memory, page), kPageBytes, 0) && !memory.backing().has_base_copy(page))
        continue;
      ASSERT_EQ(memory.backing().write(page, {page_at(memory, page), kPageBytes}), 0);
      memory.backing().note_base_copies(page, 1);
    }
    memory.note_commit_end();
    if (file != nullptr) file->finish_commit(dirty);
  }
};

}  // namespace vellum::region::test
