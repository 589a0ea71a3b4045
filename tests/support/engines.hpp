// The engines that tests run over. A new engine is added to the lists here.
//
// A suite that runs over all engines: derive from EngineTest, and name it in VELLUM_BOTH_ENGINES;
// over those that fill pages themselves: VELLUM_PAGED_ENGINES; over those that fill parts of
// chunks: VELLUM_PARTIAL_FILL_ENGINES.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vellum/region.hpp>

#include "memory/kernel/kernel.hpp"
#include "memory/kernel/support.hpp"

namespace vellum::test {

inline constexpr Engine kEngines[] = {Engine::uffd, Engine::sigsegv, Engine::mapped};
// Engines of PagedMemory: faults fill chunks, and memory is limited.
inline constexpr Engine kPagedEngines[] = {Engine::uffd, Engine::sigsegv};
// Engines that can fill parts of chunks, and map zero pages without memory.
inline constexpr Engine kPartialFillEngines[] = {Engine::uffd};

inline bool engine_available(Engine engine) {
  return engine != Engine::uffd || region::uffd_engine_works();
}

// Whether every commit finds a page again that was once written: engine mapped where the kernel
// does not track its writes (memory/kernel/private_pages.hpp).
inline bool finds_written_pages_again(Engine engine) {
  return engine == Engine::mapped &&
         (region::kernel_support().asynchronous != 0 || region::kernel_support().page_scan != 0);
}

inline Engine engine_named(const std::string& name) {
  for (const auto engine : kEngines) {
    if (name == engine_name(engine)) return engine;
  }
  return Engine::automatic;
}

inline constexpr const char* kNoUffd =
    "this kernel does not offer userfaultfd with write protection to this process";

template <typename Parameter>
class EngineTestWith : public testing::TestWithParam<Parameter> {};

class EngineTest : public testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    if (!engine_available(GetParam())) GTEST_SKIP() << kNoUffd;
  }
};

inline std::string engine_test_name(const testing::TestParamInfo<Engine>& info) {
  return engine_name(info.param);
}

}  // namespace vellum::test

#define VELLUM_ENGINES_OF(list, Suite) \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::ValuesIn(list), vellum::test::engine_test_name)

#define VELLUM_BOTH_ENGINES(Suite) VELLUM_ENGINES_OF(vellum::test::kEngines, Suite)
#define VELLUM_PAGED_ENGINES(Suite) VELLUM_ENGINES_OF(vellum::test::kPagedEngines, Suite)
#define VELLUM_PARTIAL_FILL_ENGINES(Suite) \
  VELLUM_ENGINES_OF(vellum::test::kPartialFillEngines, Suite)
