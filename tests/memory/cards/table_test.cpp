// Where the card table's addresses are not available, it is refused with a reason: other code's
// memory is never used as a table.
#include "memory/cards/table.hpp"

#include <sys/mman.h>

#include <vellum/error.hpp>

#include "support/child.hpp"

namespace vellum::cards {
namespace {

using vellum::test::ChildProgram;
using vellum::test::require;
using vellum::test::run_program;

// A terabyte that a program has reserved.
const ChildProgram kReserved("a reservation where the table lies", [](const auto&) {
  constexpr std::uint64_t kBegin = 0x340000000000, kEnd = 0x350000000000;
  void* const at = reinterpret_cast<void*>(kBegin);
  require(mmap(at, kEnd - kBegin + (1 << 30), PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == at,
          "mmap");
  try {
    reserve_table();
  } catch (const Error& error) {
    require(error.code() == Errc::unsupported, error.what());
    return;
  }
  require(false, "a refusal");
});

TEST(CardTableNoTsan, MemoryOfOtherCodeIsNotTouched) {
  EXPECT_CHILD_EXIT(run_program("a reservation where the table lies", {}), 0);
}

}  // namespace
}  // namespace vellum::cards
