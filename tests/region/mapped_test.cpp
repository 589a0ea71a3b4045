// Engine mapped: the region, its image, and how other programs see them.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "region/region_impl.hpp"
#include "store/branch/fault_fs.hpp"
#include "support/child.hpp"
#include "support/disk/forwarding_fs.hpp"
#include "support/generation_fixture.hpp"
#include "support/mapped_fixture.hpp"
#include "support/shared.hpp"

namespace vellum::test {
namespace {

TEST_F(Mapped, TheImageIsTheLastCommit) {
  Store store = Store::create(path());
  Region region = store.create_region("main", 8 * kMiB, options());
  EXPECT_EQ(region.engine(), Engine::mapped);
  std::mt19937_64 random(1);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 100; ++i) word_at(region, random() % (8 * kMiB / 8) * 8) = random();
    std::memset(bytes_of(region) + random() % (7 * kMiB), static_cast<int>(random() % 3), 100'000);
    const auto before = read_file(in_store());
    EXPECT_FALSE(before == content_of(region)) << "nothing of it is in the file yet";
    region.commit();
    EXPECT_TRUE(read_file(in_store()) == content_of(region));
    EXPECT_TRUE(content_of(store, "main") == content_of(region));
  }
  const auto last = content_of(region);
  word_at(region, 0) = 77;  // never committed
  region.close();
  EXPECT_TRUE(read_file(in_store()) == last);
  store.export_file("main", directory_ / "out");
  EXPECT_TRUE(read_file(directory_ / "out") == last);
}

TEST_F(Mapped, AnUnchangedPageIsSharedWithThePageCache) {
  Store store = Store::create(path());
  make_file(16 * kMiB);
  Region region = store.open_or_create_region("main", 1, options(file()));
  region.prefetch(region.whole());
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < region.size_bytes(); at += kPage) sum += word_at(region, at);
  word_at(region, 5 * kPage) = sum;
  std::vector<std::uint64_t> lines(region.size_bytes() / kPage);
  const int fd = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const auto first = reinterpret_cast<std::uintptr_t>(region.data()) / kPage;
  ASSERT_EQ(pread(fd, lines.data(), lines.size() * 8, static_cast<off_t>(first * 8)),
            static_cast<ssize_t>(lines.size() * 8));
  close(fd);
  for (std::size_t page = 0; page < lines.size(); ++page) {
    const bool of_file = (lines[page] >> 61 & 1) != 0;
    EXPECT_EQ(of_file, page != 5) << page;
  }
}

TEST_F(Mapped, APlainFileIsAttachedAndStaysPlain) {
  make_file(3 * kMiB + 123);
  const auto original = read_file(file());
  Store store = Store::create(path());
  {
    Region region = store.open_or_create_region("main", 1, options(file()));
    EXPECT_EQ(region.size_bytes(), 3 * kMiB + kPage);
    EXPECT_EQ(std::memcmp(region.data(), original.data(), original.size()), 0);
    EXPECT_GT(region.snapshot("first").pages_changed, 700U);
  }
  EXPECT_TRUE(read_file(file()) == original);
  expect_head(store, file());
  write_at(file(), 2 * kMiB + 17, "another program");
  write_at(file(), 3 * kMiB + 120, "and it appends");
  {
    RegionOptions as_before;
    as_before.engine = Engine::mapped;
    Region region = store.open_region("main", as_before);
    EXPECT_EQ(std::memcmp(bytes_of(region) + 2 * kMiB + 17, "another program", 15), 0);
    const auto report = region.snapshot("second");
    EXPECT_EQ(report.pages_changed, 2U);
    word_at(region, 0) = 4711;
    region.commit();
  }
  EXPECT_EQ(read_file(file()).size(), 3 * kMiB + 134);
  expect_head(store, file());
  const auto first = content_of(store, "first");
  EXPECT_EQ(std::memcmp(first.data(), original.data(), original.size()), 0);
  EXPECT_EQ(store.open_region("main", options(file())).commit().pages_dirty, 0U);
}

TEST_F(Mapped, RollbackDiscardsWritesOfAnotherProgram) {
  make_file(kMiB);
  Store store = Store::create(path());
  store.open_or_create_region("main", 1, options(file())).commit();
  const auto committed = content_of(store, "main");
  write_at(file(), 5000, "unwanted");
  Region region = store.open_region("main", options());
  word_at(region, 80'000) = 1;
  region.rollback();
  EXPECT_TRUE(content_of(region) == committed);
  word_at(region, 0) = 3;
  region.commit();
  EXPECT_TRUE(read_file(file()) == content_of(region));
  EXPECT_TRUE(content_of(store, "main") == content_of(region));
}

TEST_F(Mapped, GrowAndRollbackResizeTheFile) {
  make_file(kMiB - 100);
  Store store = Store::create(path());
  Region region = store.open_or_create_region("main", 1, options(file()));
  region.commit();
  region.grow(2 * kMiB);
  word_at(region, 2 * kMiB - 8) = 1;
  region.rollback();
  EXPECT_EQ(read_file(file()).size(), kMiB - 100);
  region.grow(2 * kMiB);
  EXPECT_EQ(word_at(region, 2 * kMiB - 8), 0U);
  word_at(region, 2 * kMiB - 8) = 2;
  region.commit();
  EXPECT_TRUE(read_file(file()) == content_of(region));
  word_at(region, kMiB) = 3;
  region.commit();
  EXPECT_TRUE(read_file(file()) == content_of(region));
}

TEST_F(Mapped, OtherEnginesCommitBetween) {
  Store store = Store::create(path());
  for (std::uint64_t round = 1; round <= 6; ++round) {
    RegionOptions how = options();
    if (round % 2 == 0) how.engine = Engine::sigsegv;
    Region region =
        round == 1 ? store.create_region("main", 4 * kMiB, how) : store.open_region("main", how);
    EXPECT_EQ(word_at(region, 0), round - 1);
    word_at(region, 0) = round;
    word_at(region, round * 300'000 / 8 * 8) = round;
    region.commit();
    if (round % 2 == 1) {
      EXPECT_TRUE(read_file(in_store()) == content_of(region));
    }
  }
  store.remove_branch("main");
  EXPECT_FALSE(std::filesystem::exists(path() + "/branches/main"));
}

TEST_F(Mapped, ErrorsNameTheFile) {
  Store store = Store::create(path());
  make_file(kMiB);
  Region region = store.open_or_create_region("main", 1, options(file()));
  expect_error(Errc::busy, {file()}, [&] { store.create_region("other", kMiB, options(file())); });
  EXPECT_FALSE(store.contains("other"));
  region.close();
  std::filesystem::create_directory(directory_ / "d");
  expect_error(Errc::corrupted, {directory_ / "d"},
               [&] { store.create_region("other", kMiB, options(directory_ / "d")); });
  std::filesystem::create_symlink(file(), directory_ / "link");
  expect_error(Errc::corrupted, {directory_ / "link"},
               [&] { store.create_region("other", kMiB, options(directory_ / "link")); });
  expect_error(Errc::not_found, {directory_ / "no/where"},
               [&] { store.create_region("other", kMiB, options(directory_ / "no/where")); });
  RegionOptions uffd = options(file());
  uffd.engine = Engine::sigsegv;
  expect_error(Errc::invalid_argument, {"image.path"},
               [&] { (void)store.open_region("main", uffd); });
}

TEST_F(Mapped, TheStoreRecordsThePathOfTheImage) {
  Store store = Store::create(path());
  store.create_region("plain", kMiB).close();
  store.create_region("inside", kMiB, options()).close();
  EXPECT_FALSE(store.branch_image("plain").has_value());
  EXPECT_FALSE(store.branch_image("inside").has_value());
  make_file(kMiB);
  Region region = store.open_or_create_region("main", 1, options(file()));
  ASSERT_TRUE(store.branch_image("main").has_value());
  EXPECT_EQ(store.branch_image("main")->path, file());
  EXPECT_TRUE(store.branch_image("main")->in_use);
  region.commit();
  region.close();
  EXPECT_FALSE(store.branch_image("main")->in_use);
  expect_error(Errc::not_found, {"none"}, [&] { store.branch_image("none"); });
}

TEST_F(Mapped, ATouchOfACutFileIsSigbusAndNamesIt) {
  Store store = Store::create(path());
  store.create_region("main", 4 * kMiB, options()).close();
  const auto end = run_child([&] {
    Region region = store.open_region("main", options());
    require(truncate(in_store().c_str(), 0) == 0, "truncate");
    word_at(region, kMiB) = 1;
  });
  EXPECT_CHILD_SIGNAL(end, SIGBUS);
  EXPECT_NE(end.standard_error.find("main"), std::string::npos) << end.standard_error;
  EXPECT_NE(end.standard_error.find("image"), std::string::npos) << end.standard_error;
  Region region = store.open_region("main", options());
  EXPECT_TRUE(all_zero(bytes_of(region), region.size_bytes()));
}

// A file system on which writes to images fail sometimes.
class FullImageFs final : public ForwardingFs {
 public:
  FullImageFs() : ForwardingFs(base::posix_fs()) {}
  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    return std::make_unique<ImageFile>(*this, ForwardingFs::open(path, mode));
  }
  bool full = false;

 private:
  class ImageFile final : public ForwardingFile {
   public:
    ImageFile(FullImageFs& fs, std::unique_ptr<base::File> below)
        : ForwardingFile(std::move(below)), fs_(fs) {}
    void pwrite(std::span<const std::byte> bytes, std::uint64_t at) override {
      if (fs_.full && path().ends_with("/image")) {
        ForwardingFile::pwrite(bytes.first(bytes.size() / 2), at);
        throw Error(Errc::no_space, path() + ": write: no space left");
      }
      ForwardingFile::pwrite(bytes, at);
    }

   private:
    FullImageFs& fs_;
  };
};

// The image cannot be written after a commit: the commit has happened nevertheless.
TEST_F(Mapped, AFullDiskOfTheImageKeepsTheCommit) {
  FullImageFs fs;
  Store store = Store::create(path());
  store.create_region("main", 8 * kMiB, options()).close();
  const auto core = store::StoreDirectory::open(fs, path());
  Region region = region::RegionAccess::open_branch(core, "main", options());
  std::memset(region.data(), 5, 6 * kMiB);
  region.commit();
  fs.full = true;
  for (int round = 1; round <= 3; ++round) {
    std::memset(bytes_of(region) + static_cast<std::uint64_t>(round) * kMiB, 10 + round, 2 * kMiB);
    std::memset(bytes_of(region) + 4 * kMiB, 0, kMiB);
    EXPECT_GT(region.commit().pages_changed, 0U);
    const auto committed = content_of(region);
    EXPECT_TRUE(content_of(store, "main") == committed);
    word_at(region, static_cast<std::uint64_t>(round) * kMiB) = 9;
    word_at(region, 7 * kMiB) = 9;
    region.rollback();
    EXPECT_TRUE(content_of(region) == committed) << "not what the image has";
  }
  EXPECT_FALSE(read_file(in_store()) == content_of(region));
  fs.full = false;
  EXPECT_EQ(region.commit().pages_changed, 0U);
  EXPECT_TRUE(read_file(in_store()) == content_of(region)) << "the next commit takes it there";
  fs.full = true;
  word_at(region, kPage - 8) = 77;  // in the half of the page that is not written
  region.commit();
  const auto last = content_of(region);
  region.close();
  expect_error(Errc::no_space, {in_store()},
               [&] { (void)region::RegionAccess::open_branch(core, "main", options()); });
  fs.full = false;
  Region again = region::RegionAccess::open_branch(core, "main", options());
  EXPECT_TRUE(content_of(again) == last);
  EXPECT_TRUE(read_file(in_store()) == last);
}

TEST_F(Mapped, TheImageSurvivesManyFaultsOfTheFileSystem) {
  using Call = store::test::Call;
  store::test::FaultFs fs{base::posix_fs()};
  Store store = Store::create(path());
  store.create_region("main", 2 * kMiB, options()).close();
  std::mt19937_64 random(3);
  for (const Call call : {Call::write, Call::sync, Call::truncate}) {
    for (std::uint64_t nth = 1; nth <= 10; ++nth) {
      SCOPED_TRACE(static_cast<int>(call) * 100 + static_cast<int>(nth));
      Bytes committed, attempted;
      try {
        const auto core = store::StoreDirectory::open(fs, path());
        Region region = region::RegionAccess::open_branch(core, "main", options());
        committed = attempted = content_of(region);
        fs.fail_nth(call, nth, Errc::io);
        for (int i = 0; i < 4; ++i) {
          for (int k = 0; k < 40; ++k) word_at(region, random() % (kMiB / 4) * 8) = random();
          attempted = content_of(region);
          region.commit();
          committed = attempted;
        }
      } catch (const Error&) {
      }
      fs.heal();
      Region region = store.open_region("main", options());
      const auto now = content_of(region);
      EXPECT_TRUE(now == committed || now == attempted);
      EXPECT_TRUE(read_file(in_store()) == now);
      EXPECT_TRUE(content_of(store, "main") == now);
    }
  }
}

// Repeated kill -9: the file always has the generation that opens.
TEST_F(Mapped, AKillAtAnyTimeKeepsTheImageAtTheHead) {
  const TempDirectory fast(memory_directory());
  const std::string path = fast / "store";
  StoreOptions tiny;
  tiny.journal_half_bytes = 64u << 10;
  tiny.pack_bytes = 1u << 20;
  Store store = Store::create(path, tiny);
  store.create_region("main", Generations::kBytes, options()).close();
  Shared<GenerationBoard> board;
  std::mt19937_64 random(5);
  const std::uint64_t kills = kills_wanted(40, 10);
  for (std::uint64_t kill = 0; kill < kills; ++kill) {
    auto child = start_child([&] {
      Region region = Store::open(path).open_region("main", options());
      for (std::uint64_t g = Generations::read(region.data()) + 1;; ++g) {
        Generations::write(region.data(), g);
        region.commit();
        board->committed = g;
      }
    });
    // Every other one after a commit; the rest may be while it starts.
    const std::uint64_t before = board->committed;
    while (kill % 2 == 0 && board->committed == before && child.running()) usleep(1000);
    usleep(static_cast<useconds_t>(random() % 30'000));
    child.kill(SIGKILL);
    child.wait();
    Region region = store.open_region("main", options());
    const std::uint64_t found = Generations::read(region.data());
    ASSERT_NE(found, Generations::kTorn);
    ASSERT_GE(found, board->committed.load());
    const auto image = read_file(path + "/branches/main/image");
    ASSERT_TRUE(image == content_of(store, "main")) << "generation " << found;
    ASSERT_TRUE(image == content_of(region));
  }
  EXPECT_GE(board->committed.load(), kills / 2);
}

}  // namespace
}  // namespace vellum::test
