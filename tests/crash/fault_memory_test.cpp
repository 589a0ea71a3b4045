// Address space and memory run out: opening a store or a region reports it and leaves nothing
// behind.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <vellum/store.hpp>

#include "crash/fault_run_lib.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"

namespace vellum::crash {
namespace {

class FaultMemory : public testing::Test {
 protected:
  void SetUp() override {
    path_ = fmt::format("/tmp/vellum-memory-{}", ::getpid());
    std::filesystem::remove_all(path_);
    auto region = Store::create(path_).create_region("main", 1 << 20);
    *static_cast<int*>(region.data()) = 42;
    region.commit();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  static int read_first(const std::string& path, Engine engine) {
    RegionOptions options;
    options.engine = engine;
    return *static_cast<int*>(Store::open(path).open_region("main", options).data());
  }

  void fail_every_mapping(Engine engine) {
    read_first(path_, engine);  // creates the objects that a process creates only once
    const std::size_t descriptors = open_descriptors();
    for (std::uint64_t n = 1;; ++n) {
      const FaultScope scope(Fault::memory, n, false);
      try {
        EXPECT_EQ(read_first(path_, engine), 42)
            << engine_name(engine) << ", call " << n << ": " << FaultScope::hit_call();
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::out_of_memory) << FaultScope::hit_call() << ": " << e.what();
      }
      FaultScope::repair();
      EXPECT_EQ(open_descriptors(), descriptors);
      if (!FaultScope::hit() || HasFailure()) break;
    }
    EXPECT_EQ(read_first(path_, engine), 42);
  }

  std::string path_;
};

TEST_F(FaultMemory, EveryMappingFailsNoSanitizer) {
  if (test::kSanitizer) GTEST_SKIP() << "a sanitizer has mappings of its own";
  fail_every_mapping(Engine::automatic);
  fail_every_mapping(Engine::sigsegv);
}

TEST_F(FaultMemory, AddressSpaceLimitNoSanitizer) {
  if (test::kSanitizer) GTEST_SKIP() << "a sanitizer needs terabytes of address space";
  const auto end = test::run_child([this] {
    const rlimit limit{2ULL << 30, 2ULL << 30};
    test::require(::setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
    try {
      RegionOptions large;
      large.capacity_bytes = 64ULL << 30;
      (void)Store::open(path_).open_region("main", large);
      test::require(false, "the region opens");
    } catch (const Error& e) {
      test::require(e.code() == Errc::out_of_memory, e.what());
      test::require(std::string(e.what()).find("capacity_bytes") != std::string::npos, e.what());
    }
    auto region = Store::open(path_).open_region("main");
    test::require(region.capacity_bytes() < limit.rlim_cur / 4, "leaves the program some");
    test::require(*static_cast<int*>(region.data()) == 42, "the content is unchanged");
    *static_cast<int*>(region.data()) = 43;
    region.commit();
  });
  EXPECT_CHILD_EXIT(end, 0);
}

}  // namespace
}  // namespace vellum::crash
