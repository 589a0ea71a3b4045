// A forked child does not have the region, and does not affect the parent's.
#include <signal.h>

#include "memory/memory_fixture.hpp"
#include "support/child.hpp"

namespace vellum::region::test {
namespace {

using vellum::test::require;
using vellum::test::run_child;

class Fork : public MemoryTest {};

// NoTsan: in the child, TSan's thread maps its own memory at the region's addresses.
TEST_P(Fork, TouchingTheRegionInAChildIsSigsegv_NoTsan) {
  const auto memory = make(4 * kMiB);
  std::memset(memory->data(), 1, kMiB);
  commit(*memory);
  std::memset(memory->data(), 2, kMiB);
  for (const std::uint64_t at : {std::uint64_t{0}, kMiB / 2, 3 * kMiB}) {
    EXPECT_CHILD_SIGNAL(run_child([&] {
                          [[maybe_unused]] const std::byte seen =
                              *static_cast<volatile std::byte*>(memory->data() + at);
                        }),
                        SIGSEGV);
    EXPECT_CHILD_SIGNAL(
        run_child([&] { *static_cast<volatile std::byte*>(memory->data() + at) = std::byte{9}; }),
        SIGSEGV);
  }
  EXPECT_TRUE(all_bytes(memory->data(), kMiB, 2));
  EXPECT_TRUE(all_bytes(memory->data() + kMiB, 3 * kMiB, 0));
  memory->discard(collect(*memory));
  EXPECT_TRUE(all_bytes(memory->data(), kMiB, 1));
}

TEST_P(Fork, AChildCanOpenItsOwnRegions) {
  const auto memory = make(4 * kMiB);
  std::memset(memory->data(), 1, kMiB);
  EXPECT_CHILD_EXIT(run_child([&] {
                      const auto own = make(4 * kMiB);
                      std::memset(own->data(), 5, kMiB);
                      require(collect(*own).size() >= 256, "the child's region works");
                    }),
                    0);
  EXPECT_TRUE(all_bytes(memory->data(), kMiB, 1));
  EXPECT_GE(collect(*memory).size(), 256u);
}

VELLUM_BOTH_ENGINES(Fork);

}  // namespace
}  // namespace vellum::region::test
