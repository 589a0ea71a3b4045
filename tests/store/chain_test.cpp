// Pages that stand on long chains of deltas.
#include "store/branch/checkpoint.hpp"
#include "store/check/verify.hpp"
#include "support.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kChainPages = 64;

// As many deltas on each page as a checkpoint allows, and then some: reading a few of them side by
// side needs more room than the fault handler has, and goes on in smaller steps.
TEST(Chains, TheLongestOnManyPagesAtOnce) {
  TempDirectory directory;
  const auto store = StoreCore::create(base::posix_fs(), directory.path("s"), small_options());
  store->create_branch("main", kChainPages * kPageBytes, 0);
  auto writer = BranchWriter::open(*store, "main");
  std::mt19937_64 random(3);
  Model model(kChainPages);
  for (PageNumber p = 0; p < kChainPages; ++p) model.fill(p, random);
  commit(*writer, model, true);
  std::size_t longest = 0;
  for (int checkpoint = 0; checkpoint < 2 * kMaxDeltaDepth; ++checkpoint) {
    for (PageNumber p = 0; p < kChainPages; ++p) {
      model.store64(p, 8 * static_cast<std::size_t>(checkpoint), random());
    }
    commit(*writer, model, true);
    const auto source = open_version(*store, "main");
    std::size_t deltas = 0;
    for (PageNumber p = 0; p < 16; ++p) deltas += source->chain(p).size() - 1;
    longest = std::max(longest, deltas);
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{16}, kChainPages}) {
      expect_same(*source, model.bytes, step);
    }
  }
  EXPECT_EQ(longest, 16u * kMaxDeltaDepth);
  EXPECT_TRUE(verify_store(*store, true, nullptr).damages.empty());
}

// A page that grows by small stores on a page of zeros has no base at all.
TEST(Chains, OnZeros) {
  TempDirectory directory;
  const auto store = StoreCore::create(base::posix_fs(), directory.path("s"), small_options());
  store->create_branch("main", kChainPages * kPageBytes, 0);
  auto writer = BranchWriter::open(*store, "main");
  std::mt19937_64 random(4);
  Model model(kChainPages);
  for (int checkpoint = 0; checkpoint < 3 * kMaxDeltaDepth; ++checkpoint) {
    for (PageNumber p = 0; p < kChainPages; p += 3) {
      model.store64(p, 8 * static_cast<std::size_t>(checkpoint), random());
    }
    commit(*writer, model, true);
    expect_same(*open_version(*store, "main"), model.bytes);
  }
  EXPECT_TRUE(verify_store(*store, true, nullptr).damages.empty());
}

}  // namespace
}  // namespace vellum::store::test
