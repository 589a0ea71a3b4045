// A failure seen in Privateer (github.com/LLNL/Privateer at dcb5a80): it renames a block's file to
// the block's hash after any result of pwrite(2) but -1. A file of that name is never written
// again, and the half block replaces the whole one in every later version.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <vellum/store.hpp>

#include "base/temp_directory.hpp"
#include "crash/syscall_seam_lib.hpp"
#include "support/engines.hpp"

namespace vellum::crash {
namespace {

constexpr std::uint64_t kBytes = 48u * 4096;

class ShortWrite : public test::EngineTest {
 protected:
  void SetUp() override {
    test::EngineTest::SetUp();
    options_.engine = GetParam();
    options_.capacity_bytes = kBytes;
    std::mt19937_64 random(1);
    for (auto& word : content_) word = random();
  }

  void store_content(const Region& region, std::uint64_t bytes) const {
    std::memcpy(region.data(), content_.data(), bytes);
  }

  // The commit fails whose nth write is cut short. The next program commits the same bytes again,
  // and so does another branch. False: there is no nth write.
  bool commit_with_a_short_write(std::uint64_t bytes, std::uint64_t nth) {
    std::filesystem::remove_all(path_);
    bool hit = false;
    {
      StoreOptions tiny;
      tiny.journal_half_bytes = 64u << 10;
      Region region = Store::create(path_, tiny).create_region("main", kBytes, options_);
      store_content(region, bytes);
      const FaultScope scope(Fault::short_write, nth, false);
      try {
        region.commit();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::no_space) << error.what();
      }
      hit = FaultScope::hit();
    }
    for (const char* branch : {"main", "other"}) {
      Region region = Store::open(path_).open_or_create_region(branch, kBytes, options_);
      store_content(region, bytes);
      region.snapshot(std::string("of-") + branch);
    }
    check(bytes);
    return hit;
  }

  void check(std::uint64_t bytes) const {
    const Store store = Store::open(path_);
    for (const char* name : {"main", "other", "of-main", "of-other"}) {
      std::vector<std::byte> seen(bytes);
      store.read(name, 0, seen.data(), bytes);
      EXPECT_EQ(std::memcmp(seen.data(), content_.data(), bytes), 0) << name;
    }
    for (const auto& damage : store.verify({.read_data = true}).damages) {
      ADD_FAILURE() << damage.object << ": " << damage.reason;
    }
  }

  const test::TempDirectory directory_{test::memory_directory()};
  const std::string path_ = directory_ / "store";
  RegionOptions options_;
  std::vector<std::uint64_t> content_ = std::vector<std::uint64_t>(kBytes / 8);
};

TEST_P(ShortWrite, AHalfBlockNeverReplacesTheWholeOne) {
  // Into the journal, into a pack
  for (const std::uint64_t bytes : {std::uint64_t{3000}, kBytes}) {
    std::uint64_t nth = 1;
    while (!HasFailure() && commit_with_a_short_write(bytes, nth)) ++nth;
    EXPECT_GT(nth, 1u);
  }
}

VELLUM_BOTH_ENGINES(ShortWrite);

}  // namespace
}  // namespace vellum::crash
