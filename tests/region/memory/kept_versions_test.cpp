// VELLUM_KEEP_VERSIONS: the decoded pages of a version stay for its next opening.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/bytes/checksum.hpp"
#include "memory/shared/shared_file.hpp"
#include "support/child.hpp"
#include "support/disk/small_disk.hpp"
#include "support/sanitizers.hpp"
#include "support/shared.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kKeptBytes = 4 * kMiB, kKeptChunk = 64u << 10;

class KeptVersions : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_NE(mkdtemp(share_), nullptr);
    setenv("VELLUM_SHARE_DIRECTORY", share_, 1);
    keep(100 * kMiB);
    fill(create());
  }
  void TearDown() override {
    unsetenv("VELLUM_KEEP_VERSIONS");
    unsetenv("VELLUM_SHARE_DIRECTORY");
    fs::remove_all(share_);
    StoreTest::TearDown();
  }
  static void keep(std::uint64_t bytes) {
    setenv("VELLUM_KEEP_VERSIONS", std::to_string(bytes).c_str(), 1);
  }
  void fill(Store store) const {
    Region region = store.create_region("main", kKeptBytes, options());
    std::mt19937_64 random(5);
    for (int version = 1; version <= 3; ++version) {
      for (std::uint64_t at = 0; at < kKeptBytes; at += 8) word_at(region, at) = random();
      region.snapshot(std::to_string(version));
    }
  }
  Region open(const std::string& version = "1") const {
    return Store::open(path()).open_version(version, options());
  }
  bool reads_right(const Region& region, const std::string& version = "1") const {
    return content_of(region) == content_of(Store::open(path()), version);
  }
  std::string kept_directory() const {
    return std::string(share_) + "/vellum-kept-" + std::to_string(geteuid());
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> out;
    if (!fs::exists(kept_directory())) return out;
    for (const auto& entry : fs::directory_iterator(kept_directory())) out.push_back(entry.path());
    return out;
  }
  static std::uint64_t file_bytes() {
    return region::SharedLayout{"", kKeptBytes, kKeptChunk}.file_bytes();
  }
  // Of the first chunk, with the checksum of its new content or the old one.
  static void change_first_chunk(const std::string& file, bool with_sum) {
    const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    std::vector<std::byte> chunk(kKeptChunk);
    ASSERT_EQ(pread(fd, chunk.data(), chunk.size(), 0), static_cast<ssize_t>(chunk.size()));
    chunk[0] ^= std::byte{1};
    ASSERT_EQ(pwrite(fd, chunk.data(), chunk.size(), 0), static_cast<ssize_t>(chunk.size()));
    const auto sum = static_cast<std::uint32_t>(base::checksum64(chunk, 0));
    const auto words_at = region::SharedLayout{"", kKeptBytes, kKeptChunk}.words_at();
    if (with_sum) {
      ASSERT_EQ(pwrite(fd, &sum, sizeof sum, static_cast<off_t>(words_at)), 4);
    }
    close(fd);
  }

  char share_[64] = "/dev/shm/kept-versions-XXXXXX";
};

TEST_P(KeptVersions, TheNextOpeningUsesTheDecodedPages) {
  EXPECT_TRUE(reads_right(open()));
  ASSERT_EQ(kept().size(), 1U);
  EXPECT_EQ(fs::file_size(kept()[0]), file_bytes());
  change_first_chunk(kept()[0], true);
  const Region again = open();
  EXPECT_EQ(again.memory_use().shared_bytes, 0U);
  EXPECT_FALSE(reads_right(again)) << "it was decoded again";
  EXPECT_EQ(again.memory_use().shared_bytes, kKeptBytes);
}

TEST_P(KeptVersions, ADamagedPageIsReadFromTheStore) {
  EXPECT_TRUE(reads_right(open()));
  change_first_chunk(kept()[0], false);
  EXPECT_TRUE(reads_right(open()));
}

TEST_P(KeptVersions, WithoutTheVariableNothingStays) {
  unsetenv("VELLUM_KEEP_VERSIONS");
  EXPECT_TRUE(reads_right(open()));
  EXPECT_EQ(kept().size(), 0U);
  keep(0);
  EXPECT_TRUE(reads_right(open()));
  EXPECT_EQ(kept().size(), 0U);
  setenv("VELLUM_KEEP_VERSIONS", "2 GB", 1);
  expect_error(Errc::invalid_argument, {"VELLUM_KEEP_VERSIONS", "2 GB"}, [&] { open(); });
}

TEST_P(KeptVersions, FilesOpenedLongestAgoGiveWay) {
  keep(2 * file_bytes());
  EXPECT_TRUE(reads_right(open("1"), "1"));
  const std::string first = kept().at(0);
  EXPECT_TRUE(reads_right(open("2"), "2"));
  EXPECT_TRUE(reads_right(open("1"), "1"));  // version 2 is older now
  EXPECT_TRUE(reads_right(open("3"), "3"));
  ASSERT_EQ(kept().size(), 2U);
  EXPECT_TRUE(fs::exists(first));
}

TEST_P(KeptVersions, FilesInUseStay) {
  keep(file_bytes());
  const Region reader = open("1");
  const std::string first = kept().at(0);
  const Region other = open("2");
  EXPECT_TRUE(reads_right(other, "2"));
  EXPECT_EQ(other.memory_use().shared_bytes, 0U);
  EXPECT_EQ(kept(), std::vector<std::string>{first});
  EXPECT_TRUE(reads_right(reader, "1"));
}

TEST_P(KeptVersions, NothingGivesWayToAFileThatDoesNotFit) {
  keep(2 * file_bytes());
  {
    Region larger = Store::open(path()).create_region("larger", kKeptBytes + kMiB, options());
    std::memset(larger.data(), 7, larger.size_bytes());
    larger.snapshot("4");
  }
  const Region reader = open("1");
  EXPECT_TRUE(reads_right(open("2"), "2"));
  const auto before = kept();
  EXPECT_TRUE(reads_right(open("4"), "4"));
  EXPECT_EQ(before.size(), 2U);
  EXPECT_EQ(kept(), before);
}

TEST_P(KeptVersions, HalfOfTheFileSystemStaysFree) {
  const SmallDisk disk(3 * file_bytes());
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  setenv("VELLUM_SHARE_DIRECTORY", (disk / "").c_str(), 1);
  for (const std::string version : {"1", "2", "3"}) {
    const Region region = open(version);
    EXPECT_TRUE(reads_right(region, version));
    EXPECT_EQ(region.memory_use().shared_bytes, kKeptBytes) << version;
    EXPECT_LT(fs::space(disk / "").capacity / 2, fs::space(disk / "").free);
  }
}

TEST_P(KeptVersions, FewDescriptorsAndLittleAddressSpaceAreLeftToTheProgramNoSanitizer) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer needs terabytes of address space";
  constexpr std::uint64_t kLargeBytes = 180 * kMiB;
  Region large = Store::create(directory_ / "large").create_region("main", kLargeBytes, options());
  large.snapshot("1");
  large.close();
  keep(2 * kLargeBytes);
  const auto opens_with = [&](std::uint64_t space_bytes, bool kept_versions) {
    return run_child([&] {
             if (!kept_versions) unsetenv("VELLUM_KEEP_VERSIONS");
             std::uint64_t mapped_pages = 0;
             std::ifstream("/proc/self/statm") >> mapped_pages;
             const rlimit space{mapped_pages * kPage + space_bytes, RLIM_INFINITY};
             require(setrlimit(RLIMIT_AS, &space) == 0, "setrlimit");
             RegionOptions small;
             small.engine = GetParam();
             (void)Store::open(directory_ / "large").open_version("1", small);
           })
        .exited_with(0);
  };
  for (std::uint64_t quarters = 6; quarters <= 24; ++quarters) {
    const std::uint64_t space_bytes = kLargeBytes / 4 * quarters;
    if (opens_with(space_bytes, false)) {
      EXPECT_TRUE(opens_with(space_bytes, true)) << quarters;
    }
  }
  EXPECT_CHILD_EXIT(run_child([&] {
                      std::vector<Region> all;
                      const rlimit files{256, 256};
                      require(setrlimit(RLIMIT_NOFILE, &files) == 0, "setrlimit");
                      Store store = Store::open(path());
                      for (int i = 0; i < 55; ++i)
                        all.push_back(store.open_version("1", options()));
                    }),
                    0);
}

TEST_P(KeptVersions, ProcessesThatOpenItAtOnceShareOneFile) {
  keep(file_bytes());
  for (int round = 0; round < 5; ++round) {
    Shared<std::atomic<int>> open_now;
    std::vector<Child> readers;
    for (int i = 0; i < 6; ++i) {
      readers.push_back(start_child([&] {
        const Region region = open();
        ++*open_now;
        while (*open_now < 6) usleep(100);
        require(reads_right(region), "right");
        require(region.memory_use().shared_bytes == kKeptBytes, "shared");
      }));
    }
    for (Child& reader : readers) EXPECT_CHILD_EXIT(reader.wait(), 0);
    EXPECT_EQ(kept().size(), 1U);
    for (const std::string& file : kept()) fs::remove(file);
  }
}

TEST_P(KeptVersions, AVersionAboveTheLimitIsNotKept) {
  keep(file_bytes() - 1);
  EXPECT_TRUE(reads_right(open()));
  EXPECT_EQ(kept().size(), 0U);
}

TEST_P(KeptVersions, AFileOfAnotherLibraryGivesWay) {
  EXPECT_TRUE(reads_right(open()));
  const std::string file = kept().at(0);
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  const auto header_at = region::SharedLayout{"", kKeptBytes, kKeptChunk}.header_at();
  ASSERT_EQ(pwrite(fd, "layout 0", 8, static_cast<off_t>(header_at + 22)), 8);
  close(fd);
  const Region region = open();
  EXPECT_TRUE(reads_right(region));
  EXPECT_EQ(region.memory_use().shared_bytes, kKeptBytes);
  EXPECT_EQ(kept(), std::vector<std::string>{file});
}

TEST_P(KeptVersions, AForeignDirectoryIsNotUsed) {
  const std::string foreign = directory_ / "foreign";
  fs::create_directory(foreign);
  fs::create_directory_symlink(foreign, kept_directory());
  EXPECT_TRUE(reads_right(open()));
  EXPECT_TRUE(fs::is_empty(foreign));
  fs::remove(kept_directory());
  fs::create_directory(kept_directory());
  fs::permissions(kept_directory(), fs::perms::all);
  EXPECT_TRUE(reads_right(open()));
  EXPECT_EQ(kept().size(), 0U);
}

TEST_P(KeptVersions, AKilledReadersFileIsUsable) {
  std::mt19937_64 random(7);
  for (int kill_number = 0; kill_number < 10; ++kill_number) {
    Child reader = start_child([&] {
      for (;;) (void)content_of(open());
    });
    usleep(static_cast<useconds_t>(random() % 20000));
    kill(reader.pid(), SIGKILL);
    reader.wait();
    ASSERT_TRUE(reads_right(open()));
    for (const std::string& file : kept()) fs::remove(file);
  }
}

TEST_P(KeptVersions, ManyProcessesStayWithinTheLimit) {
  keep(2 * file_bytes());
  std::vector<Child> readers;
  for (int i = 0; i < 6; ++i) {
    readers.push_back(start_child([&, i] {
      for (int n = 0; n < 5; ++n) {
        const std::string version = std::to_string((i + n) % 3 + 1);
        require(reads_right(open(version), version), "right");
        require(kept().size() <= 2, "within the limit");
      }
    }));
  }
  for (Child& reader : readers) EXPECT_CHILD_EXIT(reader.wait(), 0);
}

TEST_P(KeptVersions, AMachineShortOfMemoryKeepsNone) {
  EXPECT_TRUE(reads_right(open()));
  ASSERT_EQ(kept().size(), 1U);
  std::ofstream(directory_ / "meminfo") << "MemTotal: 16000000 kB\nMemAvailable: 900000 kB\n";
  const auto end = run_child([&] {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
        mount((directory_ / "meminfo").c_str(), "/proc/meminfo", nullptr, MS_BIND, nullptr) != 0) {
      _exit(77);
    }
    require(reads_right(open("2"), "2"), "right");
    require(kept().empty(), "none is kept");
  });
  if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == 77) {
    GTEST_SKIP() << "another /proc/meminfo needs the right to mount";
  }
  EXPECT_CHILD_EXIT(end, 0);
}

TEST_P(KeptVersions, EncryptedVersionsAreNotKept) {
  if (GetParam() == Engine::mapped) GTEST_SKIP() << "refuses branches of encrypted stores";
  StoreOptions encrypted;
  encrypted.encrypt = true;
  const std::string key_file = directory_ / "key";
  std::ofstream(key_file) << std::string(32, 'k');
  fs::permissions(key_file, fs::perms::owner_read);
  encrypted.key.key_file = key_file;
  set_key_source(encrypted.key);
  const std::string at = directory_ / "encrypted";
  fill(Store::create(at, encrypted));
  EXPECT_EQ(content_of(Store::open(at).open_version("1", options())),
            content_of(Store::open(at), "1"));
  set_key_source({});
  EXPECT_EQ(kept().size(), 0U);
}

VELLUM_BOTH_ENGINES(KeptVersions);

}  // namespace
}  // namespace vellum::test
