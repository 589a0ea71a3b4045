// The journal of a file for other processes: its owner, its readers, and files that it does not
// change.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vellum/atomic_file.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "base/temp_directory.hpp"
#include "interfaces/atomic_file/file_journal.hpp"
#include "support/disk/forwarding_fs.hpp"

namespace vellum::test {
namespace {

namespace fs = std::filesystem;

class FileJournalTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "file") const { return directory_ / name; }
  static std::string journal(const std::string& path) { return path + ".vellum-journal"; }
  static AtomicFileOptions options() {
    AtomicFileOptions out;
    out.tracker = Tracker::pages;
    out.medium = Medium::disk;
    out.capacity_bytes = 64u << 20;
    return out;
  }
  static AtomicFile make(const std::string& path, std::uint64_t size_bytes = 10000) {
    return AtomicFile::open_or_create(path, size_bytes, options());
  }
  static char first_byte(const std::string& path) {
    return static_cast<char>(std::ifstream(path, std::ios::binary).get());
  }

  TempDirectory directory_;
};

// The journal has content of the file, and thus the same access rights.
TEST_F(FileJournalTest, TheJournalHasTheAccessRightsOfTheFile) {
  for (const mode_t mode : {0600U, 0640U, 0666U}) {
    std::ofstream(path()) << "content";
    ASSERT_EQ(0, chmod(path().c_str(), mode));
    const auto file = AtomicFile::open(path(), options());
    struct stat status{};
    ASSERT_EQ(0, stat(journal(path()).c_str(), &status));
    EXPECT_EQ(mode, status.st_mode & 0777U);
  }
}

TEST_F(FileJournalTest, AJournalOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make one";
  auto file = make(path("other"));
  static_cast<char*>(file.data())[0] = 'o';
  file.commit();
  fs::copy_file(journal(path("other")), journal(path()));
  make(path("made")).close();
  fs::rename(path("made"), path());
  ASSERT_EQ(0, chown(journal(path()).c_str(), 12345, 12345));
  try {
    (void)AtomicFile::open(path(), options());
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(Errc::corrupted, error.code());
    EXPECT_NE(std::string::npos, std::string(error.what()).find("another user")) << error.what();
  }
}

// A file that was closed in order, except for the removal of its journal, has nothing left to
// recover.
TEST_F(FileJournalTest, AnEmptyJournalOfAnotherFileIsReplaced) {
  auto other = make(path("other"));
  std::ofstream(path()) << "content";
  fs::copy_file(journal(path("other")), journal(path()));
  AtomicFile::open(path(), options()).close();
  EXPECT_EQ('c', first_byte(path()));
  static_cast<char*>(other.data())[0] = 'o';
  other.commit();
  fs::copy_file(journal(path("other")), journal(path()));
  EXPECT_THROW((void)AtomicFile::open(path(), options()), Error)
      << "this one has something to bring";
  EXPECT_EQ('c', first_byte(path()));
}

// However a child ends, the file is its parent's.
TEST_F(FileJournalTest, AForkedChildKeepsTheJournal) {
  auto file = make(path());
  auto* at = static_cast<char*>(file.data());
  at[0] = 'a';
  file.commit();
  const pid_t child = fork();
  if (child == 0) {
    at[0] = 'c';
    Errc refused = Errc::ok;
    try {
      file.commit();
    } catch (const Error& error) {
      refused = error.code();
    }
    file.close();
    _exit(refused == Errc::unsupported ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(0, status);
  EXPECT_TRUE(fs::exists(journal(path())));
  at[1] = 'b';
  file.commit();
  EXPECT_THROW((void)AtomicFile::open(path(), options()), Error) << "still locked";
  file.close();
  EXPECT_EQ('a', first_byte(path()));
}

TEST_F(FileJournalTest, AFailedOpeningLeavesNoJournal) {
  std::ofstream(path()) << "content";
  AtomicFileOptions taken = options();
  const auto other = make(path("other"));
  taken.base_address = reinterpret_cast<std::uintptr_t>(other.data());
  EXPECT_THROW((void)AtomicFile::open(path(), taken), Error);
  AtomicFile::open(path(), options()).close();
  EXPECT_EQ('c', first_byte(path()));
  EXPECT_FALSE(fs::exists(journal(path())));
  for (const auto& entry : fs::directory_iterator(directory_.path()))
    EXPECT_NE(".new", entry.path().extension()) << entry.path();
}

// Detects a journal that gets its name before its size is durable, which fences do not achieve.
class SizeWatchFs final : public ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    return std::make_unique<SizeWatchFile>(*this, ForwardingFs::open(path, mode));
  }
  void rename_new(const std::string& from, const std::string& to) override {
    ++named_;
    EXPECT_FALSE(unsynced_size_) << from;
    ForwardingFs::rename_new(from, to);
  }
  int named() const { return named_; }

 private:
  class SizeWatchFile final : public ForwardingFile {
   public:
    SizeWatchFile(SizeWatchFs& fs, std::unique_ptr<base::File> below)
        : ForwardingFile(std::move(below)), fs_(fs) {}
    void pwrite(std::span<const std::byte> bytes, std::uint64_t at) override {
      if (at + bytes.size() > size_bytes()) fs_.unsynced_size_ = true;
      ForwardingFile::pwrite(bytes, at);
    }
    void truncate(std::uint64_t size) override {
      fs_.unsynced_size_ = true;
      ForwardingFile::truncate(size);
    }
    void allocate(std::uint64_t at, std::uint64_t length) override {
      fs_.unsynced_size_ = true;
      ForwardingFile::allocate(at, length);
    }
    void sync_data() override {
      ForwardingFile::sync_data();
      fs_.unsynced_size_ = false;
    }

   private:
    SizeWatchFs& fs_;
  };
  bool unsynced_size_ = false;
  int named_ = 0;
};

TEST_F(FileJournalTest, AJournalGetsItsNameAfterItsSizeIsDurable) {
  setenv("PMEM_IS_PMEM_FORCE", "1", 1);
  const TempDirectory in_memory(memory_directory());
  for (const Medium medium : {Medium::disk, Medium::persistent_memory}) {
    const std::string file_path = in_memory / (medium == Medium::disk ? "disk" : "memory");
    std::ofstream(file_path) << std::string(8192, 'x');
    SizeWatchFs fs(base::posix_fs());
    const auto file = fs.open(file_path, base::OpenMode::read_write);
    std::unique_ptr<atomic_file::MediumFile> image;
    try {
      atomic_file::FileJournal::open(fs, file_path, *file, medium, 256u << 10, image);
    } catch (const Error& error) {
      if (error.code() != Errc::unsupported) throw;
      continue;  // built without libpmem
    }
    EXPECT_EQ(1, fs.named());
  }
}

// Leftovers of a process that was killed while it created a journal, or the file.
TEST_F(FileJournalTest, LeftoversOfAKilledOpeningAreRemovedByTheNext) {
  for (const char* number : {"0", "1", "3"})
    std::ofstream(journal(path()) + "." + number + ".new") << "left";
  const std::string held = journal(path()) + ".2.new";
  std::ofstream(held) << "in the making";
  const auto somebody = base::posix_fs().open(held, base::OpenMode::read_write);
  ASSERT_TRUE(somebody->try_lock_exclusive());
  auto file = make(path());
  static_cast<char*>(file.data())[0] = 'f';
  file.commit();
  file.close();
  EXPECT_EQ('f', first_byte(path()));
  for (const auto& entry : fs::directory_iterator(directory_.path()))
    EXPECT_TRUE(entry.path() == path() || entry.path() == held) << entry.path();
  EXPECT_EQ(13U, fs::file_size(held)) << "as it was";
}

// Leftovers of earlier builds, which used random names. Only a file that begins like a journal is
// one.
TEST_F(FileJournalTest, LeftoversOfAnEarlierBuildAreRemoved) {
  const auto other = make(path("other"));
  const auto left = [&](const std::string& middle) { return journal(path()) + "." + middle; };
  fs::copy_file(journal(path("other")), left("0123456789abcdef.new"));
  const std::string held = left("fedcba9876543210.new");
  fs::copy_file(journal(path("other")), held);
  const auto somebody = base::posix_fs().open(held, base::OpenMode::read_write);
  ASSERT_TRUE(somebody->try_lock_exclusive());
  const std::string foreign = left("00000000ffffffff.new");
  std::ofstream(foreign) << "somebody else's";
  std::vector<std::string> kept = {held, foreign};
  for (const char* middle :
       {"0123456789abcde.new", "0123456789abcdeg.new", "0123456789abcdef.old"}) {
    kept.push_back(left(middle));
    fs::copy_file(journal(path("other")), kept.back());
  }
  kept.push_back(path("other") + ".vellum-journal.0123456789abcdef.new");
  fs::copy_file(journal(path("other")), kept.back());
  make(path()).close();
  EXPECT_FALSE(fs::exists(left("0123456789abcdef.new")));
  for (const std::string& name : kept) EXPECT_TRUE(fs::exists(name)) << name;
}

// A journal with commits that the file lacks stays.
TEST_F(FileJournalTest, TheJournalStaysWhenTheFileCannotBeWritten) {
  class BrokenFile final : public ForwardingFile {
   public:
    using ForwardingFile::ForwardingFile;
    void truncate(std::uint64_t) override { throw Error(Errc::io, "the disk is broken"); }
  };
  const pid_t child = fork();
  if (child == 0) {
    auto file = make(path());
    static_cast<char*>(file.data())[0] = 'c';
    file.commit();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(0, status);
  fs::resize_file(path(), 20000);  // so that it has to be cut first, on any medium
  BrokenFile broken(base::posix_fs().open(path(), base::OpenMode::read_write));
  EXPECT_THROW(atomic_file::FileJournal::recover(base::posix_fs(), path(), broken, {}), Error);
  EXPECT_EQ(1U, AtomicFile::recover(path()).commits);
  EXPECT_EQ('c', first_byte(path()));
}

}  // namespace
}  // namespace vellum::test
