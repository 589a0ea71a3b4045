// The journal of a file as others see it: whose it is, who may read it, and what it leaves alone.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vellum/atomic_file.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/temp_directory.hpp"

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

// It holds what the file holds, and so is as secret.
TEST_F(FileJournalTest, IsReadByThoseWhoMayReadTheFile) {
  for (const mode_t mode : {0600U, 0640U, 0666U}) {
    std::ofstream(path()) << "content";
    ASSERT_EQ(0, chmod(path().c_str(), mode));
    const auto file = AtomicFile::open(path(), options());
    struct stat status{};
    ASSERT_EQ(0, stat(journal(path()).c_str(), &status));
    EXPECT_EQ(mode, status.st_mode & 0777U);
  }
}

TEST_F(FileJournalTest, OfSomebodyElseIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make one";
  auto file = make(path("other"));
  static_cast<char*>(file.data())[0] = 'o';
  file.commit();
  fs::copy_file(journal(path("other")), journal(path()));
  make(path("made")).close();
  fs::rename(path("made"), path());
  ASSERT_EQ(0, chown(journal(path()).c_str(), 12345, 12345));
  try {
    AtomicFile::open(path(), options());
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(Errc::damaged, error.code());
    EXPECT_NE(std::string::npos, std::string(error.what()).find("somebody else")) << error.what();
  }
}

// What was closed in order, but for the removal of its journal, has left nothing to bring.
TEST_F(FileJournalTest, EmptyOneOfAnotherFileIsReplaced) {
  auto other = make(path("other"));
  std::ofstream(path()) << "content";
  fs::copy_file(journal(path("other")), journal(path()));
  AtomicFile::open(path(), options()).close();
  EXPECT_EQ('c', first_byte(path()));
  static_cast<char*>(other.data())[0] = 'o';
  other.commit();
  fs::copy_file(journal(path("other")), journal(path()));
  EXPECT_THROW(AtomicFile::open(path(), options()), Error) << "this one has something to bring";
  EXPECT_EQ('c', first_byte(path()));
}

// However a child ends, the file is its parent's.
TEST_F(FileJournalTest, IsNotAChildsToRemove) {
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
  EXPECT_THROW(AtomicFile::open(path(), options()), Error) << "still locked";
  file.close();
  EXPECT_EQ('a', first_byte(path()));
}

TEST_F(FileJournalTest, NothingIsLeftOfAFileThatCouldNotBeOpened) {
  std::ofstream(path()) << "content";
  AtomicFileOptions taken = options();
  const auto other = make(path("other"));
  taken.base_address = reinterpret_cast<std::uintptr_t>(other.data());
  EXPECT_THROW(AtomicFile::open(path(), taken), Error);
  AtomicFile::open(path(), options()).close();
  EXPECT_EQ('c', first_byte(path()));
  EXPECT_FALSE(fs::exists(journal(path())));
  for (const auto& entry : fs::directory_iterator(directory_.path()))
    EXPECT_NE(".new", entry.path().extension()) << entry.path();
}

}  // namespace
}  // namespace vellum::test
