// When a bulk load starts, and which thread gets which unit.
#include "memory/paging/bulk_load.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace vellum::region {
namespace {

constexpr std::size_t kUnit = 32, kAllUnits = 1u << 20;

// Returns the number of faults before a load started; `most`: no load has started.
std::size_t faults_until_sign(BulkLoad& load, std::size_t most = 5000) {
  for (std::size_t i = 1; i < most; ++i) {
    if (load.note_fault()) return i;
  }
  return most;
}

std::vector<std::size_t> all_of(BulkLoad& load) {
  std::vector<std::size_t> out;
  for (std::size_t unit = 0; load.next(unit);) out.push_back(unit);
  return out;
}

using List = std::vector<std::size_t>;

TEST(WideLoads, ALoadBeginsAtTheFaultThatIsTheSign) {
  for (const auto& [chunks, faults] :
       {std::pair{std::size_t{20}, std::size_t{16}}, {2048, 32}, {std::size_t{1} << 20, 1024}}) {
    BulkLoad load(chunks, kUnit, kAllUnits);
    std::size_t unit = 0;
    EXPECT_FALSE(load.begun());
    EXPECT_FALSE(load.next(unit));
    BulkLoad fresh(chunks, kUnit, kAllUnits);
    EXPECT_EQ(faults_until_sign(fresh), faults) << chunks;
    EXPECT_TRUE(fresh.begun());
    EXPECT_EQ(faults_until_sign(fresh), 5000U) << "a second sign";
  }
}

TEST(WideLoads, EachUnitIsReturnedOnce) {
  BulkLoad load(5 * kUnit - 3, kUnit, kAllUnits);
  faults_until_sign(load);
  EXPECT_TRUE(load.take(2));
  EXPECT_FALSE(load.take(2));
  EXPECT_EQ(all_of(load), (List{0, 1, 3, 4}));
  EXPECT_FALSE(load.begun());
  EXPECT_FALSE(load.take(0));
}

TEST(WideLoads, ALoadSkipsAStretch) {
  BulkLoad load(10 * kUnit, kUnit, kAllUnits);
  faults_until_sign(load);
  std::size_t unit = 0;
  ASSERT_TRUE(load.next(unit));
  load.skip_to(8);
  load.skip_to(3);  // never backwards
  EXPECT_EQ(all_of(load), (List{8, 9}));
}

TEST(WideLoads, ALoadStopsAtItsLimit) {
  BulkLoad load(100 * kUnit, kUnit, 3);
  faults_until_sign(load);
  EXPECT_TRUE(load.take(50));
  EXPECT_EQ(all_of(load), (List{0, 1}));
  EXPECT_FALSE(load.take(60));
  BulkLoad none(100 * kUnit, kUnit, 0);
  faults_until_sign(none);
  EXPECT_FALSE(none.begun());
  EXPECT_FALSE(none.take(0));
}

TEST(WideLoads, ALoadEndsOnRequest) {
  BulkLoad load(100 * kUnit, kUnit, kAllUnits);
  faults_until_sign(load);
  load.end();
  EXPECT_FALSE(load.begun());
  EXPECT_EQ(all_of(load), List{});
  EXPECT_FALSE(load.take(7));
}

TEST(WideLoads, ThreadsShareTheUnits) {
  constexpr std::size_t kUnits = 1000;
  BulkLoad load(kUnits * kUnit, kUnit, kAllUnits);
  std::vector<std::atomic<int>> taken(kUnits);
  std::atomic<int> signs{0};
  const auto in_threads = [](const auto& body) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([&body, t] { body(t); });
    for (auto& thread : threads) thread.join();
  };
  in_threads([&](int) {
    for (int i = 0; i < 500; ++i) signs += load.note_fault() ? 1 : 0;
  });
  EXPECT_EQ(signs, 1);
  in_threads([&](int t) {
    for (std::size_t unit = 0; t % 2 == 0 && load.next(unit);) ++taken[unit];
    for (std::size_t unit = kUnits; t % 2 != 0 && unit-- > 0;) taken[unit] += load.take(unit);
  });
  for (const auto& count : taken) ASSERT_EQ(count, 1);
}

}  // namespace
}  // namespace vellum::region
