// What every engine promises, and what the directory promises about crashes.
#include <gtest/gtest.h>

#include "base/expect_error.hpp"
#include "base/temp_directory.hpp"
#include "remote/engine/directory_engine.hpp"
#include "remote/engine/probe.hpp"
#include "support/disk/crash_images_lib.hpp"
#include "support/disk/sim_fs_lib.hpp"

namespace vellum::remote::test {
namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* from = reinterpret_cast<const std::byte*>(text.data());
  return {from, from + text.size()};
}

TEST(DirectoryEngineTest, KeepsObjects) {
  vellum::test::TempDirectory directory;
  DirectoryEngine objects(base::posix_fs(), directory / "r");
  EXPECT_TRUE(objects.list("", 10).empty());
  EXPECT_ERRC(objects.get("a/b", 10), Errc::not_found);
  EXPECT_TRUE(objects.put_if_absent("a/b", bytes_of("one")));
  EXPECT_FALSE(objects.put_if_absent("a/b", bytes_of("two")));
  EXPECT_EQ(objects.get("a/b", 3), bytes_of("one"));
  EXPECT_ERRC(objects.get("a/b", 2), Errc::corrupted);
  EXPECT_EQ(objects.get_range("a/b", {1, 2}), bytes_of("ne"));
  EXPECT_ERRC(objects.get_range("a/b", {1, 3}), Errc::corrupted);
  objects.put("a/b", bytes_of("three"));
  objects.put("a/c-1", bytes_of(""));
  objects.put("b", bytes_of("4"));
  EXPECT_EQ(objects.list("", 10), (std::vector<ObjectInfo>{{"a/b", 5}, {"a/c-1", 0}, {"b", 1}}));
  EXPECT_EQ(objects.list("a/c", 10), (std::vector<ObjectInfo>{{"a/c-1", 0}}));
  EXPECT_EQ(objects.list("a", 1), (std::vector<ObjectInfo>{{"a/b", 5}}));
  objects.remove("a/b");
  objects.remove("a/b");
  EXPECT_ERRC(objects.get_range("a/b", {0, 1}), Errc::not_found);
  EXPECT_ERRC(objects.put("../x", {}), Errc::invalid_argument);
}

TEST(DirectoryEngineTest, OneOfManyCreatorsWins) {
  vellum::test::TempDirectory directory;
  DirectoryEngine objects(base::posix_fs(), directory / "r");
  const ProbeResult result = probe_conditional_writes(objects, {100, 6});
  EXPECT_TRUE(result.one_creator_wins());
  EXPECT_EQ(result.rounds, 100u);
  EXPECT_TRUE(objects.list("probe", 10).empty());
}

// After a power cut an object whose put returned is whole, and every other is whole or not there.
TEST(DirectoryEngineTest, APowerCutLeavesObjectsWhole) {
  const auto content = [](std::size_t i) {
    return std::vector<std::byte>(700 + i, static_cast<std::byte>(i));
  };
  constexpr std::size_t kObjects = 4;
  sim::SimFs fs;
  fs.start_log();
  DirectoryEngine objects(fs, "/r");
  for (std::size_t i = 0; i < kObjects; ++i) {
    fs.allow_states(i, i + 1);
    ASSERT_TRUE(objects.put_if_absent("o/" + std::to_string(i), content(i)));
  }
  fs.allow_states(kObjects, kObjects);
  fs.stop_log();
  std::uint64_t images = 0;
  sim::CrashImages(fs, {8, 100, 6, 30}, 7)
      .for_each([&](const sim::Disk& image, std::size_t low, std::size_t) {
        sim::SimFs disk(image);
        DirectoryEngine left(disk, "/r");
        for (std::size_t i = 0; i < kObjects; ++i) {
          const std::string key = "o/" + std::to_string(i);
          const bool is_there = disk.exists("/r/" + key);
          EXPECT_TRUE(is_there || i >= low) << i;
          if (!is_there) continue;
          EXPECT_EQ(left.get(key, 4096), content(i)) << i;
        }
        ++images;
      });
  EXPECT_GT(images, 100u);
}

}  // namespace
}  // namespace vellum::remote::test
