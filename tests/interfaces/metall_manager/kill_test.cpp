// A writer is killed repeatedly while it inserts: the datastore always opens, is consistent,
// and has all of the last flush. VELLUM_METALL_KILLS=1000 for the long run.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <string>
#include <vellum/metall.hpp>

#include <metall/container/unordered_map.hpp>
#include <metall/container/vector.hpp>

#include "base/temp_directory.hpp"
#include "support/child.hpp"
#include "support/shared.hpp"

namespace vellum::test {
namespace {

using Manager = metall_manager;
template <typename T>
using Allocator = Manager::allocator_type<T>;
using Vector = ::metall::container::vector<std::uint64_t, Allocator<std::uint64_t>>;
using Map =
    ::metall::container::unordered_map<std::uint64_t, Vector, std::hash<std::uint64_t>,
                                       std::equal_to<std::uint64_t>,
                                       ::metall::container::scoped_allocator_adaptor<
                                           Allocator<std::pair<const std::uint64_t, Vector>>>>;

constexpr std::uint64_t kKeys = 997, kPerFlush = 200;

// Value i has key i % kKeys, as element i / kKeys; "count" is the number of values.
void insert(Manager& manager, std::uint64_t value) {
  (*manager.find<Map>("map").first)[value % kKeys].push_back(value);
  *manager.find<std::uint64_t>("count").first = value + 1;
  // Objects are created and destroyed: Metall's metadata changes with every flush.
  const std::string name = "object-" + std::to_string(value % 64);
  if (!manager.destroy<Vector>(name.c_str())) {
    manager.construct<Vector>(name.c_str())(value % 5'000, manager.get_allocator<>());
  }
}

void write_for_ever(const std::string& path, std::atomic<std::uint64_t>& flushed,
                    std::uint64_t seed) {
  Manager manager(::metall::open_only, path);
  require(manager.check_sanity(), "the datastore opens to write");
  std::mt19937_64 random(seed);
  for (std::uint64_t value = *manager.find<std::uint64_t>("count").first;; ++value) {
    insert(manager, value);
    if (random() % kPerFlush != 0) continue;
    manager.flush(random() % 4 != 0);
    if (random() % 8 == 0) {
      require(manager.snapshot(path + "@last"), "a snapshot");
    }
    manager.flush();
    flushed = value + 1;  // shared with the parent: the values that must exist from now on
  }
}

// How many values the datastore holds, all of them in place; dies otherwise.
std::uint64_t checked_count(const std::string& path) {
  EXPECT_TRUE(Manager::consistent(path)) << metall_last_error();
  const Manager manager(::metall::open_read_only, path);
  EXPECT_TRUE(manager.check_sanity()) << metall_last_error();
  const std::uint64_t count = *manager.find<std::uint64_t>("count").first;
  const Map& map = *manager.find<Map>("map").first;
  std::uint64_t found = 0;
  for (const auto& [key, values] : map) {
    for (std::uint64_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], key + i * kKeys);
    }
    found += values.size();
  }
  EXPECT_EQ(found, count);
  return count;
}

TEST(MetallKill, AKilledDatastoreOpensAndIsConsistent) {
  const char* const wanted = std::getenv("VELLUM_METALL_KILLS");
  const int kills = wanted != nullptr ? std::atoi(wanted) : 10;
  const TempDirectory directory;
  const std::string path = directory / "ds";
  {
    Manager manager(::metall::create_only, path, std::size_t{1} << 34);
    ASSERT_TRUE(manager.check_sanity());
    manager.construct<Map>("map")(manager.get_allocator<>());
    manager.construct<std::uint64_t>("count")(0u);
  }
  const Shared<std::atomic<std::uint64_t>> flushed;
  std::mt19937 random(7);
  std::uint64_t snapshots = 0;
  for (int i = 0; i < kills; ++i) {
    Child child = start_child([&] { write_for_ever(path, *flushed, static_cast<unsigned>(i)); });
    // Sometimes killed before the writer has started, mostly while it works.
    const std::uint64_t before = *flushed;
    while (i % 4 != 0 && *flushed == before && child.running()) usleep(1'000);
    usleep(static_cast<useconds_t>(random() % 50'000));
    child.kill(SIGKILL);
    const ChildEnd end = child.wait();
    ASSERT_TRUE(end.died_by(SIGKILL)) << testing::PrintToString(end);
    const std::uint64_t count = checked_count(path);
    ASSERT_GE(count, *flushed) << "after kill " << i;
    if (Manager::consistent(path + "@last")) {
      ++snapshots;
      EXPECT_LE(checked_count(path + "@last"), count);
    }
    ASSERT_FALSE(HasFailure()) << "after kill " << i;
  }
  std::printf("%d kills, %ju values, snapshot there %ju times\n", kills,
              std::uintmax_t{flushed->load()}, std::uintmax_t{snapshots});
  EXPECT_GT(*flushed, 0u);
}

}  // namespace
}  // namespace vellum::test
