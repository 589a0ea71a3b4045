// Where the log finds writes, the kernel may not merge the region's pages with others (KSM): they
// would lose their protection.
#include <sys/prctl.h>

#include <fstream>
#include <string>

#include "memory/engine/uffd_memory.hpp"
#include "memory/kernel/support.hpp"
#include "memory/memory_fixture.hpp"
#include "support/child.hpp"

namespace vellum::region::test {
namespace {

// The flags of the mapping at an address, as in /proc/self/smaps.
std::string mapping_flags(const std::byte* at) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(at);
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      found = begin <= wanted && wanted < end;
    if (found && line.starts_with("VmFlags:")) return line;
  }
  return {};
}

TEST(MergedPages, AreNoneOfARegionWithALog) {
  if (kernel_support().synchronous != 0) GTEST_SKIP() << vellum::test::kNoUffd;
  constexpr int kSetMemoryMerge = 67;  // PR_SET_MEMORY_MERGE, Linux 6.4
  const auto end = vellum::test::run_child([] {
    if (prctl(kSetMemoryMerge, 1, 0, 0, 0) != 0) return;
    MemoryOptions options;
    options.size_bytes = options.capacity_bytes = kMiB;
    options.writable = true;
    UffdMemory memory(options, nullptr, Tracking::synchronous);
    memory.start();
    memory.data()[0] = std::byte{1};
    const std::string flags = mapping_flags(memory.data());
    vellum::test::require(!flags.empty(), "the region has a mapping");
    vellum::test::require(flags.find(" mg") == std::string::npos, flags);
  });
  EXPECT_CHILD_EXIT(end, 0);
}

}  // namespace
}  // namespace vellum::region::test
