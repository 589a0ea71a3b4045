// Packs that gc has removed are closed, even with concurrent readers.
#include "store/packs/pack_file.hpp"

#include <atomic>
#include <cerrno>
#include <thread>

#include "base/expect_error.hpp"
#include "store/snapshots_fixture.hpp"

namespace vellum::store::test {
namespace {

// Counts the files that are open.
class OpenFilesFs final : public vellum::test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    return std::make_unique<CountedFile>(*this, ForwardingFs::open(path, mode));
  }
  std::atomic<int> files{0};

 private:
  class CountedFile final : public vellum::test::ForwardingFile {
   public:
    CountedFile(OpenFilesFs& fs, std::unique_ptr<base::File> below)
        : ForwardingFile(std::move(below)), fs_(fs) {
      ++fs_.files;
    }
    ~CountedFile() override { --fs_.files; }

   private:
    OpenFilesFs& fs_;
  };
};

std::unique_ptr<base::File> file_of(const std::string& path, std::byte content) {
  auto file = base::posix_fs().open(path, base::OpenMode::create_new);
  file->pwrite(std::vector<std::byte>(kPageBytes, content), 0);
  return file;
}

TEST(PackFile, AClosedPackReportsNoData) {
  TempDirectory dir;
  OpenFilesFs fs(base::posix_fs());
  file_of(dir.path("p"), std::byte{7});
  PackFile pack(fs.open(dir.path("p"), base::OpenMode::read_only));
  std::vector<std::byte> page(kPageBytes);
  EXPECT_EQ(pack.try_pread(page, 0), 0);
  EXPECT_EQ(page[9], std::byte{7});
  EXPECT_FALSE(pack.replaced());
  EXPECT_EQ(fs.files, 1);

  EXPECT_TRUE(pack.try_close());
  EXPECT_EQ(fs.files, 0);
  EXPECT_EQ(pack.try_pread(page, 0), ENODATA);
  EXPECT_TRUE(pack.replaced());
  EXPECT_EQ(pack.path(), dir.path("p"));
  EXPECT_ERRC(pack.pread(page, 0), Errc::corrupted);
  EXPECT_ERRC(static_cast<void>(pack.size_bytes()), Errc::corrupted);
  EXPECT_TRUE(pack.try_close()) << "twice";
}

// Each read gets all bytes or none.
TEST(PackFile, APackIsClosedBetweenReads) {
  TempDirectory dir;
  OpenFilesFs fs(base::posix_fs());
  file_of(dir.path("p"), std::byte{7});
  for (int round = 0; round < 40; ++round) {
    PackFile pack(fs.open(dir.path("p"), base::OpenMode::read_only));
    std::atomic<int> wrong{0}, ready{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i) {
      readers.emplace_back([&] {
        std::vector<std::byte> page(kPageBytes);
        ++ready;
        for (int error = 0; error != ENODATA;) {
          page[100] = std::byte{0};
          error = pack.try_pread(page, 0);
          wrong += error == 0 ? page[100] != std::byte{7} : error != ENODATA;
        }
      });
    }
    while (ready < 2) std::this_thread::yield();
    while (!pack.try_close()) std::this_thread::yield();
    EXPECT_EQ(fs.files, 0);
    for (auto& reader : readers) reader.join();
    EXPECT_EQ(wrong, 0);
  }
}

class PacksGone : public SnapshotsTest {};

// A process may write for months.
TEST_F(PacksGone, RemovedPacksDoNotStayOpen) {
  OpenFilesFs counting(base::posix_fs());
  format::Superblock options = small_options();
  options.pack_bytes = format::kMinPackBytes;
  store = StoreDirectory::create(counting, dir.path("s"), options);
  constexpr std::size_t kPages = 8;
  store->create_branch("main", kPages * kPageBytes, 0);
  {
    const auto writer = BranchWriter::open(*store, "main");
    Model model(kPages);
    std::mt19937_64 random(1);
    std::uint64_t removed = 0;
    for (int round = 0; round < 40; ++round) {
      for (PageNumber p = 0; p < kPages; ++p) model.fill(p, random);
      commit(*writer, model, true);
      open_version(*store, "main");  // opens the packs that it needs
      removed += collect_garbage(*store, false, nullptr).packs_removed;
    }
    // The existing packs, those open for writing, and those that the last gc has removed.
    constexpr int kOthers = 8;
    const auto packs = static_cast<int>(store->packs().list().size());
    EXPECT_GT(removed, 2u * kOthers);
    EXPECT_LE(counting.files, packs + kOthers);
    expect_same(*open_version(*store, "main"), model.bytes);
  }
  store.reset();  // before the file system that it uses
}

}  // namespace
}  // namespace vellum::store::test
