// vellum_mmap() and similar functions keep what mmap(2) promises, with commits instead of
// write-back.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vellum/msync.h>
#include <vellum/atomic_file.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/temp_directory.hpp"
#include "interfaces/atomic_file/mapped_files.hpp"
#include "support/sanitizers.hpp"

namespace vellum::test {
namespace {

namespace fs = std::filesystem;

class Msync : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path()) << std::string(kBytes, '.');
    fd_ = open(path().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd_, 0);
  }
  void TearDown() override { close(fd_); }

  std::string path() const { return directory_ / "file"; }
  std::string content() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  char* map(std::size_t bytes = kBytes, off_t offset = 0) const {
    void* at = vellum_mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, offset);
    return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
  }

  static constexpr std::size_t kBytes = 40000;
  TempDirectory directory_;
  int fd_ = -1;
};

TEST_F(Msync, UnmappingTheLastMappingLeavesThePlainFile) {
  char* one = map();
  char* two = map(8192, 8192);
  ASSERT_NE(nullptr, one);
  ASSERT_NE(nullptr, two);
  EXPECT_EQ('.', one[kBytes - 1]);
  two[5] = 'b';
  EXPECT_EQ('b', one[8197]) << "mappings of one file show the same bytes";
  EXPECT_EQ(0, vellum_msync(two, 8192, MS_SYNC));
  one[0] = 'a';
  EXPECT_EQ(0, vellum_munmap(one, kBytes));
  EXPECT_EQ('b', two[5]) << "the other mapping is still there";
  EXPECT_EQ(0, vellum_munmap(two, 8192));
  std::string expected(kBytes, '.');
  expected[0] = 'a';
  expected[8197] = 'b';
  EXPECT_EQ(expected, content());
  EXPECT_FALSE(fs::exists(path() + ".vellum-journal"));
}

TEST_F(Msync, SparseFileStaysSparse) {
  ASSERT_EQ(0, ftruncate(fd_, 32 << 20));
  char* at = map(32u << 20);
  ASSERT_NE(nullptr, at);
  at[20u << 20] = 'x';
  EXPECT_EQ(0, vellum_munmap(at, 32u << 20));
  struct stat status{};
  ASSERT_EQ(0, fstat(fd_, &status));
  EXPECT_EQ(32 << 20, status.st_size);
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
}

TEST_F(Msync, AKilledProgramLeavesItsLastMsync) {
  const pid_t child = fork();
  if (child == 0) {
    char* at = map();
    std::memcpy(at + 100, "first", 5);
    if (vellum_msync(at, kBytes, MS_SYNC) != 0) _exit(1);
    std::memcpy(at + 100, "other", 5);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  char* at = map();
  ASSERT_NE(nullptr, at) << "the next to map it recovers it";
  EXPECT_EQ("first", std::string(at + 100, 5));
  EXPECT_EQ(0, vellum_munmap(at, kBytes));
  EXPECT_EQ("first", content().substr(100, 5));
}

TEST_F(Msync, ExitCommitsMappedFiles) {
  const pid_t child = fork();
  if (child == 0) {
    char* at = map();
    if (at == nullptr) _exit(1);
    std::memcpy(at, "at exit", 7);
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(0, status);
  EXPECT_EQ("at exit", content().substr(0, 7));
  EXPECT_FALSE(fs::exists(path() + ".vellum-journal"));
}

TEST_F(Msync, AChildOfForkCannotCommitItsParentsFile) {
  char* at = map();
  ASSERT_NE(nullptr, at);
  const pid_t child = fork();
  if (child == 0) {
    at[0] = 'c';
    const bool refused = vellum_msync(at, kBytes, MS_SYNC) == -1 && errno == ENOTSUP;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(0, status);
  at[1] = 'p';
  EXPECT_EQ(0, vellum_msync(at, kBytes, MS_SYNC));
  EXPECT_EQ(0, vellum_munmap(at, kBytes));
  EXPECT_EQ(".p", content().substr(0, 2));
}

TEST_F(Msync, AChildThatExitsLeavesItsParentsFile) {
  char* at = map();
  ASSERT_NE(nullptr, at);
  at[0] = 'a';
  EXPECT_EQ(0, vellum_msync(at, kBytes, MS_SYNC));
  const pid_t child = fork();
  if (child == 0) {
    at[1] = 'c';
    std::exit(vellum_munmap(at, kBytes));
  }
  const pid_t another = fork();
  if (another == 0) std::exit(0);
  for (const pid_t it : {child, another}) {
    int status = 0;
    waitpid(it, &status, 0);
    EXPECT_EQ(0, status);
  }
  EXPECT_TRUE(fs::exists(path() + ".vellum-journal"));
  at[2] = 'p';
  EXPECT_EQ(0, vellum_msync(at, kBytes, MS_SYNC));
  EXPECT_EQ(0, vellum_munmap(at, kBytes));
  EXPECT_EQ("a.p", content().substr(0, 3));
}

// This runs in a child, whose limit on file sizes stands for the full disk.
TEST_F(Msync, AFileThatCannotBeCommittedStaysMapped) {
  const pid_t child = fork();
  if (child == 0) {
    char* at = map();
    if (at == nullptr) _exit(1);
    std::memset(at, 'x', kBytes);
    signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{10000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    if (vellum_munmap(at, kBytes) != -1) _exit(2);
    if (at[kBytes - 1] != 'x' || vellum_msync(at, kBytes, MS_SYNC) != -1) _exit(3);
    setrlimit(RLIMIT_FSIZE, &before);
    _exit(vellum_munmap(at, kBytes) == 0 ? 0 : 4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(0, status);
  EXPECT_EQ(std::string(kBytes, 'x'), content());
}

TEST_F(Msync, FtruncateGrowsAFileUnderALongerMapping) {
  char* at = map(1 << 20);
  ASSERT_NE(nullptr, at);
  EXPECT_EQ(0, vellum_ftruncate(fd_, 500000));
  at[499999] = 'e';
  EXPECT_EQ(at, vellum_mremap(at, 1 << 20, 2 << 20, MREMAP_MAYMOVE));
  EXPECT_EQ(0, vellum_ftruncate(fd_, 300000));
  EXPECT_EQ(0, vellum_ftruncate(fd_, 500000));
  EXPECT_EQ('\0', at[499999]) << "cut off, and zero since";
  at[400000] = 'f';
  EXPECT_EQ(0, vellum_munmap(at, 2 << 20));
  EXPECT_EQ(500000U, fs::file_size(path()));
  EXPECT_EQ('f', content()[400000]);
}

// As the wrappers of read(2) and write(2) use it.
TEST_F(Msync, FileCallsUseTheMemory) {
  char* at = map();
  ASSERT_NE(nullptr, at);
  auto& files = atomic_file::MappedFiles::instance();
  at[100] = 's';
  char read[3] = {};
  EXPECT_EQ(3, files.read_at(fd_, read, 3, 99));
  EXPECT_EQ(".s.", std::string(read, 3));
  EXPECT_EQ(1, files.read_at(fd_, read, 3, kBytes - 1));
  EXPECT_EQ(0, files.read_at(fd_, read, 3, kBytes));
  std::uint64_t offset = 200;
  EXPECT_EQ(3, files.write_at(fd_, "abc", 3, offset, false));
  EXPECT_EQ('b', at[201]);
  EXPECT_EQ(3, files.write_at(fd_, "end", 3, offset, true));
  EXPECT_EQ(kBytes, offset);
  EXPECT_EQ(kBytes + 3, fs::file_size(path()));
  EXPECT_EQ(0, vellum_munmap(at, kBytes));
  EXPECT_EQ("abc", content().substr(200, 3));
  EXPECT_EQ("end", content().substr(kBytes));
  EXPECT_EQ(-1, files.read_at(fd_, read, 3, 0)) << "no longer mapped";
}

// When another descriptor writes to a page without stores of this process, the mapping shows it, as
// with mmap(2).
TEST_F(Msync, CuttingMakesNoPagePrivate) {
  char* at = map();
  ASSERT_NE(nullptr, at);
  EXPECT_EQ(0, vellum_ftruncate(fd_, 30000));
  EXPECT_EQ(0, vellum_ftruncate(fd_, 40000));
  ASSERT_EQ(5, pwrite(fd_, "other", 5, 29500));
  EXPECT_EQ("other", std::string(at + 29500, 5));
  EXPECT_EQ(0, vellum_munmap(at, kBytes));
  EXPECT_EQ("other", content().substr(29500, 5));
}

TEST_F(Msync, UnsupportedRequestsAreRefused) {
  const auto refused = [&](int flags, int fd, off_t offset) {
    errno = 0;
    void* at = vellum_mmap(nullptr, 4096, PROT_READ, flags, fd, offset);
    return at == MAP_FAILED ? errno : 0;
  };
  const int reader = open(path().c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(EINVAL, refused(MAP_PRIVATE, fd_, 0));
  EXPECT_EQ(EINVAL, refused(MAP_SHARED, fd_, 100));
  EXPECT_EQ(EBADF, refused(MAP_SHARED, -1, 0));
  EXPECT_EQ(EACCES, refused(MAP_SHARED, reader, 0));
  EXPECT_EQ(ENOTSUP, refused(MAP_SHARED | MAP_FIXED, fd_, 0));
  close(reader);
  int local = 0;
  EXPECT_EQ(-1, vellum_msync(&local, 4, MS_SYNC));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(-1, vellum_munmap(&local, 4));
  const auto other = AtomicFile::open(path());
  EXPECT_EQ(EBUSY, refused(MAP_SHARED, fd_, 0)) << "somebody else has it open";
}

}  // namespace
}  // namespace vellum::test
