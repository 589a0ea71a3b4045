// Engine mapped: the image has the size of the versions, and may become shorter.
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "region/region_impl.hpp"
#include "store/branch/fault_fs.hpp"
#include "support/child.hpp"
#include "support/generation_fixture.hpp"
#include "support/mapped_fixture.hpp"
#include "support/shared.hpp"

namespace vellum::test {
namespace {

class MappedSize : public Mapped {};

TEST_F(MappedSize, TheFileHasTheSizeOfEachCommit) {
  Store store = Store::create(path());
  Region region = store.create_region("main", kMiB, options(file()));
  std::memset(region.data(), 7, kMiB);
  region.commit();
  std::mt19937_64 random(11);
  const auto expect_file = [&] {
    const auto held = read_file(file());
    EXPECT_EQ(held.size(), region.file_bytes());
    auto head = content_of(store, "main");
    EXPECT_TRUE(all_zero(head.data() + held.size(), head.size() - held.size()));
    head.resize(held.size());
    EXPECT_TRUE(held == head);
    EXPECT_EQ(std::memcmp(region.data(), held.data(), held.size()), 0);
  };
  std::uint64_t committed = kMiB;
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t size =
        random() % 5 == 0 ? committed + random() % 100 : random() % (3 * kMiB);
    region.resize_file(size);
    EXPECT_GE(read_file(file()).size(), std::max(size, committed)) << "not cut yet";
    if (size >= 8) word_at(region, random() % (size / 8) * 8) = random();
    switch (random() % 3) {
      case 0:
        region.rollback();
        EXPECT_EQ(region.file_bytes(), committed);
        EXPECT_EQ(read_file(file()).size(), committed);
        break;
      case 1:
        region.commit_async().get();
        committed = size;
        break;
      default:
        region.commit();
        committed = size;
    }
    expect_file();
    if (round % 7 == 3) {
      region.close();
      EXPECT_EQ(read_file(file()).size(), committed);
      region = store.open_region("main", options());
      EXPECT_EQ(region.file_bytes(), committed);
      EXPECT_EQ(region.commit().pages_dirty, 0U);
      expect_file();
    }
  }
  region.resize_file(4 * kMiB);
  region.close();  // never committed
  EXPECT_EQ(read_file(file()).size(), committed);
}

TEST_F(MappedSize, ACutOffPartIsZeroAfterGrowth) {
  Store store = Store::create(path());
  Region region = store.create_region("main", kMiB, options(file()));
  std::memset(region.data(), 7, kMiB);
  region.commit();
  region.resize_file(10);
  region.commit();
  EXPECT_EQ(read_file(file()), Bytes(10, std::byte{7}));
  region.resize_file(2 * kMiB);
  EXPECT_TRUE(all_zero(bytes_of(region) + 10, 2 * kMiB - 10));
  word_at(region, kMiB) = 5;
  region.commit();
  EXPECT_TRUE(read_file(file()) == content_of(region));
  EXPECT_TRUE(content_of(store, "main") == content_of(region));
  region.resize_file(0);
  region.commit();
  EXPECT_EQ(read_file(file()).size(), 0U);
  EXPECT_TRUE(all_zero(content_of(store, "main").data(), 2 * kMiB));
  region.close();
  region = store.open_region("main", options());
  EXPECT_EQ(region.file_bytes(), 0U);
  EXPECT_EQ(region.commit().sequence, 4U) << "an empty file is what the branch has";
}

TEST_F(MappedSize, AnotherProgramMayMakeAFileShorter) {
  make_file(3 * kMiB + 123);
  Store store = Store::create(path());
  store.open_or_create_region("main", 1, options(file())).commit();
  EXPECT_EQ(store.version("main").file_bytes, 3 * kMiB + 123);
  auto expected = read_file(file());
  for (const std::uint64_t size : {2 * kMiB + 5, kMiB, std::uint64_t{9}, std::uint64_t{0}}) {
    const std::uint64_t before = expected.size();
    std::filesystem::resize_file(file(), size);
    expected.resize(size);
    {
      Region region = store.open_region("main", options());
      EXPECT_EQ(region.file_bytes(), size);
      EXPECT_TRUE(all_zero(bytes_of(region) + size, before - size));
      EXPECT_EQ(std::memcmp(region.data(), expected.data(), size), 0);
    }
    EXPECT_EQ(read_file(file()), expected) << "closed without a commit, it stays as it was";
    auto child = start_child([&] {
      const Region region = store.open_region("main", options());
      kill(getpid(), SIGKILL);
    });
    child.wait();
    {
      Region region = store.open_region("main", options());
      EXPECT_EQ(region.file_bytes(), size) << "after a crash, too";
      region.commit();
    }
    EXPECT_EQ(read_file(file()), expected);
    EXPECT_EQ(store.version("main").file_bytes, size);
    auto head = content_of(store, "main");
    EXPECT_EQ(head.size(), 3 * kMiB + kPage);
    EXPECT_TRUE(all_zero(head.data() + size, head.size() - size));
    head.resize(size);
    EXPECT_EQ(head, expected);
    Region region = store.open_region("main", options());
    EXPECT_EQ(region.commit().pages_dirty, 0U);
  }
  write_at(file(), 10, "longer again");
  Region region = store.open_region("main", options());
  EXPECT_EQ(region.file_bytes(), 22U);
  region.rollback();
  EXPECT_EQ(region.file_bytes(), 0U);
  region.close();
  region = store.open_region("main", options());
  region.commit();
  EXPECT_EQ(store.version("main").file_bytes, 22U);
}

TEST_F(MappedSize, RollbackRestoresTheLostPartOfAShorterFile) {
  make_file(kMiB + 1);
  Store store = Store::create(path());
  store.open_or_create_region("main", 1, options(file())).commit();
  const auto original = read_file(file());
  std::filesystem::resize_file(file(), 5000);
  Region region = store.open_region("main", options());
  region.rollback();
  EXPECT_EQ(region.file_bytes(), kMiB + 1);
  EXPECT_EQ(std::memcmp(region.data(), original.data(), original.size()), 0);
  word_at(region, 0) = 1;
  region.commit();
  auto expected = original;
  std::memcpy(expected.data(), region.data(), 8);
  EXPECT_TRUE(read_file(file()) == expected);
}

TEST_F(MappedSize, AnotherFileWithTheContentMustHaveTheSize) {
  make_file(5000);
  Store store = Store::create(path());
  store.open_or_create_region("main", 1, options(file())).commit();
  const std::string other = directory_ / "other";
  std::filesystem::copy(file(), other);
  write_at(other, 5000, std::string(1, '\0'));
  expect_error(Errc::already_exists, {other},
               [&] { (void)store.open_region("main", options(other)); });
  std::filesystem::resize_file(other, 5000);
  EXPECT_EQ(store.open_region("main", options(other)).commit().sequence, 1U);
}

TEST_F(MappedSize, AFailedCutIsRepeated) {
  store::test::FaultFs fs{base::posix_fs()};
  Store store = Store::create(path());
  store.create_region("main", kMiB, options()).commit();
  const auto core = store::StoreDirectory::open(fs, path());
  for (const std::uint64_t size : {5000U, 20U}) {
    Region region = region::RegionAccess::open_branch(core, "main", options());
    region.resize_file(size);
    const std::uint64_t before = read_file(in_store()).size();
    fs.fail_nth(store::test::Call::truncate, 1, Errc::io);
    region.commit();
    EXPECT_EQ(read_file(in_store()).size(), before);
    fs.heal();
    EXPECT_EQ(store.version("main").file_bytes, size) << "committed all the same";
    region.close();
    EXPECT_EQ(read_file(in_store()).size(), size);
  }
}

// kill -9 while the file becomes longer and shorter: its size is that of the head.
TEST_F(MappedSize, AKillDuringAResizeKeepsTheSizeOfTheHead) {
  const TempDirectory fast(memory_directory());
  const std::string path = fast / "store";
  StoreOptions tiny;
  tiny.journal_half_bytes = 64u << 10;
  Store store = Store::create(path, tiny);
  store.create_region("main", 4 * kMiB, options()).close();
  struct Board {
    std::atomic<std::uint64_t> committed{0};
  };
  Shared<Board> board;
  std::mt19937_64 random(6);
  // Of generation g; byte i of it is g % 251 + 1.
  const auto size_of = [](std::uint64_t g) { return g * 2654435761U % (3 * kMiB); };
  const std::uint64_t kills = kills_wanted(30, 8);
  for (std::uint64_t kill = 0; kill < kills; ++kill) {
    auto child = start_child([&] {
      Region region = Store::open(path).open_region("main", options());
      for (std::uint64_t g = region.sequence() + 1;; ++g) {
        region.resize_file(size_of(g));
        std::memset(region.data(), static_cast<int>(g % 251 + 1), size_of(g));
        region.commit();
        board->committed = g;
      }
    });
    // No kill while it starts, which takes long under a sanitizer.
    const std::uint64_t before = board->committed.load();
    while (board->committed.load() == before && child.running()) usleep(1000);
    usleep(static_cast<useconds_t>(random() % 40'000));
    child.kill(SIGKILL);
    child.wait();
    const Region region = store.open_region("main", options());
    const std::uint64_t g = region.sequence();
    ASSERT_GE(g, board->committed.load());
    const auto image = read_file(path + "/branches/main/image");
    if (g == 0) continue;
    ASSERT_EQ(region.file_bytes(), size_of(g));
    ASSERT_EQ(image, Bytes(size_of(g), static_cast<std::byte>(g % 251 + 1))) << g;
    ASSERT_EQ(std::memcmp(region.data(), image.data(), image.size()), 0);
    const auto head = content_of(store, "main");
    ASSERT_TRUE(all_zero(head.data() + image.size(), head.size() - image.size()));
  }
  EXPECT_GE(board->committed.load(), kills);
}

}  // namespace
}  // namespace vellum::test
