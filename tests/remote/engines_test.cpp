// The contract of every engine, and the crash safety of the directory.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/expect_error.hpp"
#include "base/files/file.hpp"
#include "base/temp_directory.hpp"
#include "remote/engine/directory_engine.hpp"
#include "remote/engine/probe.hpp"
#include "support/disk/crash_images_lib.hpp"
#include "support/disk/hook_fs.hpp"
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
  EXPECT_EQ(objects.get_start("a/b", 2), bytes_of("on"));
  EXPECT_EQ(objects.get_start("a/b", 9), bytes_of("one"));
  EXPECT_ERRC(objects.get_start("a/c", 9), Errc::not_found);
  EXPECT_TRUE(objects.has("a/b", 3));
  EXPECT_FALSE(objects.has("a/b", 2));
  EXPECT_FALSE(objects.has("a/b", 4));
  EXPECT_FALSE(objects.has("a/c", 3));
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

// As a remote's heads: a newer one is published, and gc deletes the older ones.
TEST(DirectoryEngineTest, AListingNeverLacksTheFirstObjectOfEachMoment) {
  vellum::test::TempDirectory directory;
  DirectoryEngine others(base::posix_fs(), directory / "r");
  vellum::test::HookFs fs(base::posix_fs());
  DirectoryEngine objects(fs, directory / "r");
  int newest = 500;
  others.put("heads/500", {});
  others.put("heads/600", {});
  fs.hooks.after_list = [&](const std::string& path) {
    if (!path.ends_with("heads") || newest < 495) return;
    others.put("heads/" + std::to_string(newest - 1), {});
    others.remove("heads/" + std::to_string(newest--));
  };
  const auto listed = objects.list("heads/", 8);
  ASSERT_FALSE(listed.empty());
  EXPECT_EQ(listed.front().key, "heads/" + std::to_string(newest));
  EXPECT_EQ(listed.back().key, "heads/600");
}

// After a power cut, an object whose put returned is complete; every other is complete or missing.
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

TEST(DirectoryEngineTest, APowerCutBringsNoRemovedObjectBack) {
  sim::SimFs fs;
  DirectoryEngine objects(fs, "/r");
  ASSERT_TRUE(objects.put_if_absent("o/1", bytes_of("content")));
  fs.start_log();
  fs.allow_states(0, 1);
  objects.remove("o/1");
  fs.allow_states(1, 1);
  fs.stop_log();
  std::uint64_t images = 0;
  sim::CrashImages(fs, {8, 100, 6, 30}, 7)
      .for_each([&](const sim::Disk& image, std::size_t low, std::size_t) {
        const sim::SimFs disk(image);
        EXPECT_TRUE(low == 0 || !disk.exists("/r/o/1"));
        ++images;
      });
  EXPECT_GT(images, 1u);
}

// Another pusher has created the directories, and was killed before it synced their parents.
TEST(DirectoryEngineTest, APowerCutAfterAKilledPusherLeavesObjectsThere) {
  const auto content = bytes_of("content");
  for (const bool is_found : {false, true}) {
    sim::SimFs fs;
    fs.start_log();
    fs.allow_states(0, 0);
    fs.make_directory("/r");
    fs.make_directory("/r/tmp");
    fs.make_directory("/r/o");
    if (is_found) {
      const auto file = fs.open("/r/o/1", base::OpenMode::create_new);
      file->pwrite(content, 0);
      file->sync_data();
    }
    DirectoryEngine objects(fs, "/r");
    fs.allow_states(0, 1);
    EXPECT_EQ(objects.put_if_absent("o/1", content), !is_found);
    fs.allow_states(1, 1);
    fs.stop_log();
    std::uint64_t images = 0, lost = 0;
    sim::CrashImages(fs, {8, 100, 6, 30}, 7)
        .for_each([&](const sim::Disk& image, std::size_t low, std::size_t) {
          const sim::SimFs disk(image);
          ++images;
          if (low == 1 && !disk.exists("/r/o/1")) ++lost;
        });
    EXPECT_EQ(lost, 0u) << "of " << images;
    EXPECT_GT(images, 10u);
  }
}

// An untrusted remote: no file outside is read, written, listed or removed.
class HostileDirectory : public testing::Test {
 protected:
  HostileDirectory() {
    std::filesystem::create_directories(inside() + "/a");
    std::filesystem::create_directories(outside());
    std::ofstream(outside() + "/1") << "precious";
    std::ofstream(outside() + "/2") << "precious";
  }
  void link(const std::string& name) const {
    std::filesystem::remove_all(inside() + "/" + name);
    std::filesystem::create_directory_symlink(outside(), inside() + "/" + name);
  }
  void expect_untouched() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(outside())) {
      EXPECT_EQ(entry.file_size(), 8u) << entry.path();
      ++count;
    }
    EXPECT_EQ(count, 2u);
  }
  std::string inside() const { return directory / "r"; }
  std::string outside() const { return directory / "outside"; }

  vellum::test::TempDirectory directory;
  DirectoryEngine objects{base::posix_fs(), inside()};
};

TEST_F(HostileDirectory, ALinkedDirectoryOfObjectsIsNotEntered) {
  link("a");
  EXPECT_ERRC(objects.get("a/1", 100), Errc::corrupted);
  EXPECT_ERRC(objects.get_range("a/1", {0, 1}), Errc::corrupted);
  EXPECT_ERRC(objects.put_if_absent("a/1", bytes_of("x")), Errc::corrupted);
  EXPECT_ERRC(objects.put_if_absent("a/3", bytes_of("x")), Errc::corrupted);
  EXPECT_ERRC(objects.put("a/1", bytes_of("x")), Errc::corrupted);
  EXPECT_ERRC(objects.put("a/b/3", bytes_of("x")), Errc::corrupted);
  EXPECT_ERRC(objects.remove("a/1"), Errc::corrupted);
  EXPECT_TRUE(objects.list("", 100).empty());
  EXPECT_TRUE(objects.list("a/", 100).empty());
  objects.sweep();
  expect_untouched();
}

TEST_F(HostileDirectory, ALinkedDirectoryOfUnfinishedFilesIsNotSweptNorWritten) {
  link("tmp");
  objects.sweep();
  EXPECT_ERRC(objects.put("a/1", bytes_of("x")), Errc::corrupted);
  EXPECT_ERRC(objects.put_if_absent("a/2", bytes_of("x")), Errc::corrupted);
  expect_untouched();
}

TEST_F(HostileDirectory, ALinkedObjectIsNotRead) {
  std::filesystem::create_symlink(outside() + "/1", inside() + "/a/1");
  EXPECT_ERRC(objects.get("a/1", 100), Errc::corrupted);
  EXPECT_FALSE(objects.put_if_absent("a/1", bytes_of("x")));
  objects.put("a/1", bytes_of("x"));  // in its place
  EXPECT_EQ(objects.get("a/1", 100), bytes_of("x"));
  expect_untouched();
}

// The path of the remote may be a link.
TEST_F(HostileDirectory, TheRootItselfMayBeALink) {
  std::filesystem::create_directory_symlink(inside(), directory / "name");
  DirectoryEngine named(base::posix_fs(), directory / "name");
  named.put("a/1", bytes_of("x"));
  EXPECT_EQ(objects.get("a/1", 100), bytes_of("x"));
}

TEST(Beneath, NoPathLeadsOut) {
  vellum::test::TempDirectory directory;
  std::filesystem::create_directories(directory / "r/a/b");
  std::ofstream(directory / "out") << "x";
  const auto fs = base::beneath(base::posix_fs(), directory / "r");
  EXPECT_ERRC(fs->open(directory / "r/../out", base::OpenMode::read_only), Errc::invalid_argument);
  EXPECT_ERRC(fs->unlink(directory / "r/a/../../out"), Errc::invalid_argument);
  fs->open(directory / "r//a/./b/1", base::OpenMode::create_new);
  fs->rename(directory / "r/a/b/1", directory / "r/2");
  fs->rename_new(directory / "r/2",
                 directory / "3");  // paths outside the directory are not restricted
  EXPECT_TRUE(fs->exists(directory / "3"));
  EXPECT_TRUE(fs->is_directory(directory / "r/a/b"));
  EXPECT_EQ(fs->list(directory / "r/a").size(), 1u);
  fs->sync_directory(directory / "r/a/b");
  fs->remove_directory(directory / "r/a/b");
  EXPECT_FALSE(fs->exists(directory / "r/a/b/c"));
  EXPECT_ERRC(fs->list(directory / "r/a/b"), Errc::not_found);
}

}  // namespace
}  // namespace vellum::remote::test
