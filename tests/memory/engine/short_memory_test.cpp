// No memory for the list of dirty pages: some are armed again by then, and none may be forgotten.
#include <sys/resource.h>
#include <vellum/error.hpp>

#include <cstdlib>
#include <fstream>
#include <new>
#include <utility>

#include "memory/memory_fixture.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"

namespace vellum::region::test {
namespace {

using vellum::test::require;

void limit_address_space(rlim_t bytes) {
  const rlimit limit{bytes, RLIM_INFINITY};
  require(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

// Takes what the allocator has, except blocks that are too small for the list.
class NoFreeMemory {
 public:
  NoFreeMemory() {
    while (auto* const block = static_cast<Block*>(std::malloc(64u << 10))) {
      block->next = first_;
      first_ = block;
    }
  }
  ~NoFreeMemory() {
    while (first_ != nullptr) std::free(std::exchange(first_, first_->next));
  }
  NoFreeMemory(const NoFreeMemory&) = delete;
  NoFreeMemory& operator=(const NoFreeMemory&) = delete;

 private:
  struct Block {
    Block* next;
  };
  Block* first_ = nullptr;
};

class ShortMemory : public MemoryTest {};

TEST_P(ShortMemory, AListThatFailsForgetsNoPageNoSanitizer) {
  if (vellum::test::kSanitizer) GTEST_SKIP() << "a sanitizer needs terabytes of address space";
  const auto end = vellum::test::run_child([this] {
    constexpr PageNumber kPages = 16384;
    const auto memory = make(kPages * kPageBytes);
    collect(*memory);  // what a search allocates once
    for (PageNumber page = 0; page < kPages; ++page) page_at(*memory, page)[0] = std::byte{1};
    std::uint64_t mapped_pages = 0;
    std::ifstream("/proc/self/statm") >> mapped_pages;
    std::vector<PageNumber> pages;
    bool failed = false;
    limit_address_space(mapped_pages * kPageBytes);
    try {
      const NoFreeMemory taken;
      memory->collect_dirty(pages);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    limit_address_space(RLIM_INFINITY);
    require(failed, "there was memory for the list");
    pages.clear();
    try {
      memory->collect_dirty(pages);
      require(pages.size() == kPages, "pages were forgotten");
    } catch (const Error& e) {
      require(e.code() == Errc::poisoned, e.what());
    }
  });
  EXPECT_CHILD_EXIT(end, 0);
}

VELLUM_BOTH_ENGINES(ShortMemory);

}  // namespace
}  // namespace vellum::region::test
