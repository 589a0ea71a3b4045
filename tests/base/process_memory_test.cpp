// The memory limits of a process and its regions.
#include "base/memory/process_memory.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/expect_error.hpp"

namespace vellum::base {
namespace {

constexpr const char* kVariable = "VELLUM_MEMORY_LIMIT";

TEST(ProcessMemory, RegionsMayHaveMostOfIt) {
  ::unsetenv(kVariable);
  EXPECT_LE(memory_for_regions(), memory_of_process() / 4 * 3);
  EXPECT_GE(memory_for_regions(), memory_of_process() / 2);
}

TEST(ProcessMemory, OrWhatTheEnvironmentSays) {
  ASSERT_EQ(::setenv(kVariable, "1048576", 1), 0);
  EXPECT_EQ(memory_for_regions(), 1048576U);
  for (const char* bad : {"0", "-1", "1.5", "1M", " 1", "99999999999999999999"}) {
    ASSERT_EQ(::setenv(kVariable, bad, 1), 0);
    EXPECT_ERRC(memory_for_regions(), Errc::invalid_argument);
  }
  ASSERT_EQ(::setenv(kVariable, "", 1), 0);
  EXPECT_GT(memory_for_regions(), 1048576U);
  ::unsetenv(kVariable);
}

}  // namespace
}  // namespace vellum::base
