// Metall's manager on Vellum, through Metall's own interface.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vellum/metall.hpp>

#include <metall/container/map.hpp>
#include <metall/container/string.hpp>
#include <metall/container/vector.hpp>
#include <metall/metall.hpp>

#include "base/temp_directory.hpp"

namespace vellum::test {
namespace {

using Manager = metall_manager;
using Vector = ::metall::container::vector<std::uint64_t, Manager::allocator_type<std::uint64_t>>;

class MetallManager : public testing::Test {
 protected:
  std::string path(const std::string& name = "ds") const { return directory_ / name; }
  static void expect_counts_to(const std::string& at, std::size_t n) {
    ASSERT_TRUE(Manager::consistent(at)) << at << ": " << metall_last_error();
    const Manager manager(::metall::open_read_only, at);
    ASSERT_TRUE(manager.check_sanity());
    const auto* const vector = manager.find<Vector>("v").first;
    ASSERT_NE(vector, nullptr);
    ASSERT_EQ(vector->size(), n) << at;
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ((*vector)[i], i);
  }
  static void count_to(Vector& vector, std::size_t n) {
    while (vector.size() < n) vector.push_back(vector.size());
  }

  // Returns the status of `vellum import`, and creates a snapshot "moved" of the result.
  int import_from(const std::string& old) const {
    const std::string command = std::string(VELLUM_CLI) + " -q import " + path() + " --metall " +
                                old + " --snapshot moved 2>/dev/null";
    return std::system(command.c_str());
  }

  TempDirectory directory_;
};

TEST_F(MetallManager, AFlushCommitsWithoutClosing) {
  auto* const manager = new Manager(::metall::create_only, path());  // never closed: as in a crash
  ASSERT_TRUE(manager->check_sanity());
  auto* const vector = manager->construct<Vector>("v")(manager->get_allocator<>());
  count_to(*vector, 1'000);
  manager->flush();
  count_to(*vector, 2'000);
  manager->construct<int>("later")(5);
  ASSERT_TRUE(manager->snapshot(path() + "@two"));
  manager->construct<int>("never")(5);
  expect_counts_to(path() + "@two", 2'000);
  const Manager two(::metall::open_read_only, path() + "@two");
  EXPECT_EQ(*two.find<int>("later").first, 5);
  EXPECT_EQ(two.find<int>("never").first, nullptr);
  delete manager;
  expect_counts_to(path(), 2'000);
}

TEST_F(MetallManager, SnapshotsHaveTheirOwnUuidsAndDescriptions) {
  {
    Manager manager(::metall::create_only, path());
    count_to(*manager.construct<Vector>("v")(manager.get_allocator<>()), 10);
    ASSERT_TRUE(manager.set_description("the first"));
    ASSERT_TRUE(manager.snapshot(path("snap")));
  }
  std::string first;
  ASSERT_TRUE(Manager::get_description(path("snap"), &first));
  EXPECT_EQ(first, "the first");
  EXPECT_NE(Manager::get_uuid(path()), "");
  EXPECT_NE(Manager::get_uuid(path("snap")), Manager::get_uuid(path()));
  ASSERT_TRUE(Manager::set_description(path("snap"), "a branch"));
  {
    Manager manager(::metall::open_only, path("snap"));
    count_to(*manager.find<Vector>("v").first, 20);
  }
  std::string description;
  ASSERT_TRUE(Manager::get_description(path("snap"), &description));
  EXPECT_EQ(description, "a branch");
  ASSERT_TRUE(Manager::get_description(path(), &description));
  EXPECT_EQ(description, "the first");
  expect_counts_to(path(), 10);
  expect_counts_to(path("snap"), 20);
}

TEST_F(MetallManager, AsynchronousCallsCommit) {
  {
    Manager manager(::metall::create_only, path());
    count_to(*manager.construct<Vector>("v")(manager.get_allocator<>()), 1'000);
    manager.flush(false);
    count_to(*manager.find<Vector>("v").first, 1'500);
    auto first = metall_snapshot_async(manager, path() + "@first");
    count_to(*manager.find<Vector>("v").first, 2'500);
    auto second = metall_snapshot_async(manager, path("second"));
    count_to(*manager.find<Vector>("v").first, 3'500);
    EXPECT_GT(first.get().sequence, 0u);
    EXPECT_GT(second.get().sequence, 0u);
    expect_counts_to(path() + "@first", 1'500);
    expect_counts_to(path("second"), 2'500);
    EXPECT_NE(Manager::get_uuid(path("second")), Manager::get_uuid(path() + "@first"));
    EXPECT_THROW(std::ignore = metall_snapshot_async(manager, ""), Error);
  }
  count_to(*Manager(::metall::open_only, path()).find<Vector>("v").first, 3'500);
  expect_counts_to(path(), 3'500);
  EXPECT_TRUE(Manager::copy_async(path(), path("copy")).get());
  EXPECT_TRUE(Manager::remove_async(path()).get());
  EXPECT_FALSE(Manager::consistent(path()));
  expect_counts_to(path("copy"), 3'500);
}

// A datastore of plain Metall moves in with everything that it points to, also allocators inside
// containers.
TEST_F(MetallManager, DatastoresOfPlainMetallAreImported) {
  using Plain = ::metall::manager;
  using String =
      ::metall::container::basic_string<char, std::char_traits<char>, Plain::allocator_type<char>>;
  using PlainMap =
      ::metall::container::map<int, String, std::less<int>,
                               ::metall::container::scoped_allocator_adaptor<
                                   Plain::allocator_type<std::pair<const int, String>>>>;
  using OwnString = ::metall::container::basic_string<char, std::char_traits<char>,
                                                      Manager::allocator_type<char>>;
  using OwnMap =
      ::metall::container::map<int, OwnString, std::less<int>,
                               ::metall::container::scoped_allocator_adaptor<
                                   Manager::allocator_type<std::pair<const int, OwnString>>>>;
  std::string uuid;
  {
    Plain plain(::metall::create_only, path("old"));
    auto* const map = plain.construct<PlainMap>("m")(plain.get_allocator<>());
    for (int i = 0; i < 10'000; ++i) {
      map->emplace(i, String(std::to_string(i).append(100, 'x').c_str(), plain.get_allocator<>()));
    }
    uuid = Plain::get_uuid(path("old"));
    EXPECT_NE(import_from(path("old")), 0);  // it is still open
  }
  ASSERT_EQ(import_from(path("old")), 0);
  EXPECT_EQ(Manager::get_uuid(path()), uuid);
  for (const auto& at : {path(), path() + "@moved"}) {
    Manager manager(::metall::open_only, at);
    ASSERT_TRUE(manager.check_sanity()) << metall_last_error();
    auto* const map = manager.find<OwnMap>("m").first;
    ASSERT_EQ(map->size(), 10'000u);
    EXPECT_EQ(map->at(9'999),
              OwnString(std::string("9999").append(100, 'x').c_str(), manager.get_allocator<>()));
    for (int i = 0; i < 20'000; ++i) {
      map->emplace(i, OwnString(std::string(50, 'y').c_str(), manager.get_allocator<>()));
    }
    EXPECT_EQ(map->size(), 20'000u);
  }
}

}  // namespace
}  // namespace vellum::test
