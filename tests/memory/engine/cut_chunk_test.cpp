// The capacity may cut the last chunk, as over a reservation. The log of written pages leaves the
// memory behind it alone, which may be another region.
#include <sys/mman.h>

#include "memory/engine/uffd_memory.hpp"
#include "memory/kernel/support.hpp"
#include "memory/memory_fixture.hpp"

namespace vellum::region::test {
namespace {

// Two regions side by side.
class CutChunks : public testing::Test {
 protected:
  void SetUp() override {
    if (kernel_support().synchronous != 0) GTEST_SKIP() << vellum::test::kNoUffd;
    place_ =
        mmap(nullptr, 3 * kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(place_, MAP_FAILED);
    first_ = make(0);
    second_ = make(1);
    for (UffdMemory* const memory : {first_.get(), second_.get()}) {
      for (PageNumber page = 0; page < kPages; ++page) write_to(*memory, page);
      collect(*memory);
    }
  }
  void TearDown() override {
    first_.reset();
    second_.reset();
    if (place_ != nullptr) munmap(place_, 3 * kBytes);
  }

  std::unique_ptr<UffdMemory> make(std::size_t number) const {
    MemoryOptions options;
    options.size_bytes = options.capacity_bytes = kBytes;
    options.writable = options.over_reservation = true;
    options.wanted_address = reinterpret_cast<std::uintptr_t>(place_) + number * kBytes;
    auto memory = std::make_unique<UffdMemory>(options, nullptr, Tracking::synchronous);
    memory->start();
    return memory;
  }
  static void write_to(UffdMemory& memory, PageNumber page) {
    memory.data()[page * kPageBytes] ^= std::byte{1};
  }
  static std::vector<PageNumber> collect(UffdMemory& memory) {
    std::vector<PageNumber> pages;
    memory.collect_dirty(pages);
    return pages;
  }

  static constexpr std::size_t kPages = 25, kBytes = kPages * kPageBytes;
  void* place_ = nullptr;
  std::unique_ptr<UffdMemory> first_, second_;
};

TEST_F(CutChunks, WritesInOrderOpenNoPageOfTheNextRegion) {
  for (const PageNumber page : {16u, 17u, 18u}) write_to(*first_, page);
  write_to(*second_, 3);
  EXPECT_EQ(collect(*second_), std::vector<PageNumber>{3});
  for (const PageNumber page : collect(*first_)) EXPECT_LT(page, kPages);
}

TEST_F(CutChunks, APinOpensNoPageOfTheNextRegion) {
  first_->pin(20, 1);
  write_to(*second_, 3);
  EXPECT_EQ(collect(*second_), std::vector<PageNumber>{3});
  EXPECT_EQ(collect(*first_).size(), kPages - 16);
  first_->unpin(20, 1);
}

// No region is behind the second one.
TEST_F(CutChunks, TheLastChunkCanBePinnedAndWritten) {
  EXPECT_NO_THROW(second_->pin(20, 1));
  second_->unpin(20, 1);
  collect(*second_);
  for (const PageNumber page : {16u, 17u, 18u, 19u}) write_to(*second_, page);
  EXPECT_EQ(collect(*second_).size(), kPages - 16);
}

}  // namespace
}  // namespace vellum::region::test
