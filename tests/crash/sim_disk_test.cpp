// The simulator itself: the images that it expects a power cut to leave.
#include <gtest/gtest.h>

#include <set>

#include "support/disk/crash_images_lib.hpp"

namespace vellum::sim {
namespace {

std::vector<std::byte> bytes_of(std::size_t n, int value) {
  return std::vector<std::byte>(n, static_cast<std::byte>(value));
}

class SimDisk : public testing::Test {
 protected:
  SimDisk() { fs_.start_log(); }

  // A letter for each sector of the file: its first byte, or '-' where the file does not exist.
  static std::string content_in(const Disk& image, const std::string& path) {
    const auto inode = image.find(path);
    if (!inode) return "-";
    const Content& content = image.at(*inode).content;
    std::string text;
    for (std::uint64_t at = 0; at < content.size(); at += kSectorBytes) {
      std::byte first{};
      content.read(at, std::span(&first, 1));
      text += first == std::byte{} ? '0' : static_cast<char>(first);
    }
    return text;
  }
  std::set<std::string> contents(const std::string& path) {
    std::set<std::string> out;
    CrashImages images(fs_, {12, 100, 12, 100}, 1);
    images.for_each(
        [&](const Disk& image, std::size_t, std::size_t) { out.insert(content_in(image, path)); });
    return out;
  }
  // The same for the last step only.
  std::set<std::string> last_contents(const std::string& path) {
    ++step_;
    fs_.allow_states(step_, step_);
    std::set<std::string> out;
    CrashImages images(fs_, {12, 100, 12, 100}, 1);
    images.for_each([&](const Disk& image, std::size_t low, std::size_t) {
      if (low == step_) out.insert(content_in(image, path));
    });
    return out;
  }
  // The states that the next boot may find.
  std::set<std::string> next_contents(const std::string& path) {
    std::mt19937_64 random(1);
    std::set<std::string> out;
    for (int i = 0; i < 200; ++i) out.insert(content_in(next_boot(fs_, random)->disk(), path));
    return out;
  }

  std::size_t step_ = 0;
  SimFs fs_;
};

TEST_F(SimDisk, AnyUnsyncedSectorMayBeMissing) {
  const auto file = fs_.open("/f", base::OpenMode::create_new);
  fs_.sync_directory("/");
  file->pwrite(bytes_of(1024, 'a'), 0);
  EXPECT_EQ(contents("/f"), (std::set<std::string>{"-", "", "a", "0a", "00", "a0", "aa"}));
}

TEST_F(SimDisk, SyncedDataStays) {
  const auto file = fs_.open("/f", base::OpenMode::create_new);
  fs_.sync_directory("/");
  file->pwrite(bytes_of(512, 'a'), 0);
  file->sync_data();
  file->pwrite(bytes_of(512, 'b'), 0);
  const auto found = contents("/f");
  EXPECT_TRUE(found.count("a") == 1 && found.count("b") == 1);
  EXPECT_EQ(found.count("0"), 1u);  // before the sync: the size without the data
}

TEST_F(SimDisk, ANameIsDurableOnlyAfterTheSyncOfItsDirectory) {
  fs_.open("/f", base::OpenMode::create_new)->sync_data();
  EXPECT_EQ(last_contents("/f"), (std::set<std::string>{"-", ""}));
  fs_.sync_directory("/");
  EXPECT_EQ(last_contents("/f"), (std::set<std::string>{""}));
}

TEST_F(SimDisk, ARenameMayLastWithoutItsData) {
  fs_.make_directory("/d");
  fs_.sync_directory("/");
  const auto file = fs_.open("/d/t", base::OpenMode::create_new);
  file->pwrite(bytes_of(512, 'a'), 0);
  fs_.rename("/d/t", "/f");
  const auto found = contents("/f");
  EXPECT_EQ(found.count(""), 1u);
  EXPECT_EQ(found.count("a"), 1u);
  EXPECT_EQ(found.count("-"), 1u);
}

TEST_F(SimDisk, TheSyncOfTheTargetEndsARename) {
  fs_.make_directory("/d");
  fs_.sync_directory("/");
  fs_.open("/d/t", base::OpenMode::create_new);
  fs_.rename("/d/t", "/f");
  fs_.sync_directory("/");
  EXPECT_EQ(last_contents("/f"), (std::set<std::string>{""}));
  EXPECT_EQ(last_contents("/d/t"), (std::set<std::string>{"-"}));
}

TEST_F(SimDisk, TheNextBootFindsAnyPossibleState) {
  const auto file = fs_.open("/f", base::OpenMode::create_new);
  fs_.sync_directory("/");
  file->pwrite(bytes_of(512, 'a'), 0);
  file->sync_data();
  file->pwrite(bytes_of(1024, 'b'), 0);
  EXPECT_EQ(next_contents("/f"), (std::set<std::string>{"a", "b", "a0", "ab", "b0", "bb"}));
  EXPECT_EQ(last_contents("/f"), next_contents("/f"));
}

TEST_F(SimDisk, TheCallDuringAPowerCutMayHaveReachedTheDisk) {
  const auto file = fs_.open("/f", base::OpenMode::create_new);
  fs_.sync_directory("/");
  fs_.cut_power_at(2);
  file->pwrite(bytes_of(512, 'a'), 0);
  EXPECT_THROW(file->pwrite(bytes_of(512, 'b'), 512), PowerCut);
  EXPECT_EQ(next_contents("/f"), (std::set<std::string>{"", "0", "a", "00", "a0", "0b", "ab"}));
}

TEST_F(SimDisk, TheSyncDuringAPowerCutHasNotReturned) {
  const auto file = fs_.open("/f", base::OpenMode::create_new);
  fs_.cut_power_at(2);
  file->pwrite(bytes_of(512, 'a'), 0);
  EXPECT_THROW(file->sync_data(), PowerCut);
  EXPECT_THROW(fs_.sync_directory("/"), PowerCut);
  EXPECT_THROW(fs_.open("/g", base::OpenMode::create_new), PowerCut);
  EXPECT_EQ(next_contents("/f"), (std::set<std::string>{"-", "", "0", "a"}));
  EXPECT_EQ(next_contents("/g"), std::set<std::string>{"-"});
}

TEST_F(SimDisk, EachImageIsVisitedOnce) {
  fs_.open("/before", base::OpenMode::create_new);
  fs_.sync_directory("/");
  fs_.allow_states(1, 1);
  const auto file = fs_.open("/f", base::OpenMode::create_new);
  file->pwrite(bytes_of(512, 'a'), 0);
  file->pwrite(bytes_of(512, 'a'), 0);  // leaves the same image as the first one
  std::multiset<std::string> found;
  each_image_once(fs_, 1, {12, 100, 12, 100}, [&](const Disk& image) {
    EXPECT_TRUE(image.find("/before"));
    found.insert(content_in(image, "/f"));
  });
  EXPECT_EQ(found, (std::multiset<std::string>{"-", "", "0", "a"}));
}

TEST_F(SimDisk, CopiesAreIndependent) {
  const auto file = fs_.open("/f", base::OpenMode::create_new);
  file->pwrite(bytes_of(5000, 'a'), 0);
  const Disk before = fs_.disk();
  const std::uint64_t hash = before.hash();
  file->pwrite(bytes_of(1, 'b'), 4500);
  file->truncate(4600);
  EXPECT_EQ(before.hash(), hash);
  EXPECT_NE(fs_.disk().hash(), hash);
  EXPECT_EQ(before.at(*before.find("/f")).content.size(), 5000u);
}

TEST_F(SimDisk, AHoleIsZerosAndTakesNoSpace) {
  const auto file = fs_.open("/f", base::OpenMode::create_new);
  file->pwrite(bytes_of(3 * kChunkBytes, 'a'), 0);
  file->punch(100, 2 * kChunkBytes);
  EXPECT_EQ(file->allocated_bytes(), 2 * kChunkBytes);
  std::vector<std::byte> back(3 * kChunkBytes);
  file->pread(back, 0);
  EXPECT_EQ(back[99], std::byte{'a'});
  EXPECT_EQ(back[100], std::byte{});
  EXPECT_EQ(back[100 + 2 * kChunkBytes], std::byte{'a'});
}

}  // namespace
}  // namespace vellum::sim
