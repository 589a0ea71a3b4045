// vellum mount --writable: a branch is a file, and its fsync is a commit.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include <vellum/datastore.hpp>
#include <vellum/store.hpp>

#include "mount/mount_lib.hpp"
#include "support/child.hpp"
#include "support/descriptor.hpp"
#include "support/disk/small_disk.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

using test::Descriptor;

constexpr std::size_t kPage = 4096;

bool write_all(int fd, const std::string& bytes, std::size_t offset) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n =
        pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

class WritableMountNoSanitizer : public MountTest {
 protected:
  void serve_main(const std::string& store) { serve(store, {"--writable", "main"}); }
  std::string main_file() const { return at("main"); }

  // The store's last commit of the branch; the branch's writer may still be open.
  std::string committed(const std::string& store) const {
    std::string out(Store::open(store).version("main").file_bytes, '\0');
    Store::open(store).read("main", 0, out.data(), out.size());
    return out;
  }
};

TEST_F(WritableMountNoSanitizer, FsyncIsACommit) {
  const std::string before = noise(5, 1), s = make_store_with({before});
  serve_main(s);
  EXPECT_TRUE(before == read_file(main_file()));
  const auto first = Store::open(s).version("main").sequence;
  const std::string more = noise(3, 2) + "end";
  {
    const Descriptor file(main_file(), O_RDWR);
    ASSERT_TRUE(write_all(file.fd(), more, 2 * kPage));
    EXPECT_TRUE(before.substr(0, 2 * kPage) + more == read_file(main_file()));
    EXPECT_TRUE(before == committed(s));
    ASSERT_EQ(0, fsync(file.fd()));
    EXPECT_TRUE(before.substr(0, 2 * kPage) + more == committed(s));
    EXPECT_EQ(first + 1, Store::open(s).version("main").sequence);
    // There is nothing to commit.
    ASSERT_EQ(0, fdatasync(file.fd()));
    EXPECT_EQ(first + 1, Store::open(s).version("main").sequence);
  }
  EXPECT_TRUE(before == read_file(at("v1")));
  const auto commit = std::to_string(first + 1);
  EXPECT_TRUE(before.substr(0, 2 * kPage) + more == read_file(at("at/main/" + commit)));
}

TEST_F(WritableMountNoSanitizer, ASynchronousWriteIsACommit) {
  const std::string before = noise(5, 1), s = make_store_with({before});
  serve_main(s);
  std::string expected = before;
  for (const int flags : {O_DSYNC, O_SYNC}) {
    const std::string more = noise(1, static_cast<unsigned>(flags));
    const Descriptor file(main_file(), O_RDWR | flags);
    ASSERT_TRUE(write_all(file.fd(), more, 0));
    expected.replace(0, kPage, more);
    EXPECT_TRUE(expected == committed(s)) << flags;
  }
  const Descriptor file(main_file(), O_RDWR);
  for (const int flags : {RWF_DSYNC, RWF_SYNC}) {
    std::string more = noise(1, static_cast<unsigned>(flags));
    const iovec piece{more.data(), more.size()};
    ASSERT_EQ(static_cast<ssize_t>(kPage), pwritev2(file.fd(), &piece, 1, kPage, flags));
    expected.replace(kPage, kPage, more);
    EXPECT_TRUE(expected == committed(s)) << flags;
  }
}

TEST_F(WritableMountNoSanitizer, ClosingAFileDoesNotCommitAndUnmountingDoes) {
  const std::string before = noise(5, 1), s = make_store_with({before});
  serve_main(s);
  const std::string after = noise(7, 2);
  {
    const Descriptor file(main_file(), O_WRONLY | O_TRUNC);
    ASSERT_TRUE(write_all(file.fd(), after, 0));
  }
  EXPECT_TRUE(before == committed(s));
  ASSERT_EQ(0, umount2(path("m").c_str(), 0));
  EXPECT_EQ(0, wait_for_server());
  EXPECT_TRUE(after == committed(s));
}

TEST_F(WritableMountNoSanitizer, ASignalCommitsTheStoresOfMappings) {
  const std::string s = make_store_with({noise(5, 1)});
  serve_main(s);
  const Descriptor file(main_file(), O_RDWR);
  void* const memory = mmap(nullptr, 5 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  ASSERT_NE(MAP_FAILED, memory);
  const std::string after = noise(5, 2);
  std::memcpy(memory, after.data(), after.size());
  EXPECT_EQ(0, stop(SIGTERM));
  munmap(memory, 5 * kPage);
  EXPECT_TRUE(after == committed(s));
}

TEST_F(WritableMountNoSanitizer, UnmountingCommitsTheStoresOfMappings) {
  const std::string s = make_store_with({noise(50, 1)});
  serve_main(s);
  const std::string after = noise(50, 2);
  {
    const Descriptor file(main_file(), O_RDWR);
    void* const memory =
        mmap(nullptr, after.size(), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
    ASSERT_NE(MAP_FAILED, memory);
    std::memcpy(memory, after.data(), after.size());
    munmap(memory, after.size());
  }
  ASSERT_EQ(0, umount2(path("m").c_str(), 0));
  EXPECT_EQ(0, wait_for_server());
  EXPECT_TRUE(after == committed(s));
}

TEST_F(WritableMountNoSanitizer, TheFileGrowsShrinksAndIsAppendedTo) {
  const std::string s = make_store();
  serve_main(s);  // creates the branch
  EXPECT_EQ("", read_file(main_file()));
  std::string expected;
  {
    const Descriptor file(main_file(), O_WRONLY | O_APPEND);
    for (unsigned i = 0; i < 500; ++i) {
      const std::string line = "line " + std::to_string(i * i) + "\n";
      ASSERT_EQ(static_cast<ssize_t>(line.size()), write(file.fd(), line.data(), line.size()));
      expected += line;
    }
  }
  const Descriptor file(main_file(), O_RDWR);
  EXPECT_TRUE(expected == read_file(main_file()));
  ASSERT_EQ(0, ftruncate(file.fd(), 100));
  ASSERT_EQ(0, ftruncate(file.fd(), 3 * kPage + 7));
  expected.resize(100);
  expected.resize(3 * kPage + 7);
  EXPECT_TRUE(expected == read_file(main_file()));
  ASSERT_EQ(1, pwrite(file.fd(), "x", 1, 9 << 20));
  expected.resize(9 << 20);
  expected += 'x';
  EXPECT_TRUE(expected == read_file(main_file()));
  ASSERT_EQ(0, fsync(file.fd()));
  EXPECT_TRUE(expected == committed(s));
  struct stat status{};
  ASSERT_EQ(0, fstat(file.fd(), &status));
  EXPECT_EQ(static_cast<off_t>(expected.size()), status.st_size);
  EXPECT_EQ(S_IFREG | 0644U, status.st_mode);
  const timespec times[] = {{5, 0}, {7, 8}};
  ASSERT_EQ(0, futimens(file.fd(), times));
  ASSERT_EQ(0, fstat(file.fd(), &status));
  EXPECT_EQ(7, status.st_mtim.tv_sec);
}

TEST_F(WritableMountNoSanitizer, UnsupportedCallsFail) {
  const std::string s = make_store_with({noise(2, 1)});
  serve_main(s);
  const Descriptor file(main_file(), O_RDWR);
  constexpr off_t kBeyond = off_t{1} << 45;
  EXPECT_EQ(-1, pwrite(file.fd(), "x", 1, kBeyond));
  EXPECT_EQ(EFBIG, errno);
  EXPECT_EQ(-1, ftruncate(file.fd(), kBeyond));
  EXPECT_EQ(EFBIG, errno);
  EXPECT_EQ(-1, ftruncate(file.fd(), -1));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(-1, fallocate(file.fd(), 0, 0, 1 << 20));
  EXPECT_EQ(EOPNOTSUPP, errno);
  EXPECT_EQ(-1, fchmod(file.fd(), 0600));
  EXPECT_EQ(EPERM, errno);
  for (const std::string& name : {at("v1"), at("at/main/0")}) {
    EXPECT_EQ(-1, open(name.c_str(), O_RDWR | O_CLOEXEC)) << name;
    EXPECT_TRUE(errno == EROFS || errno == ENOENT) << name << std::strerror(errno);
  }
  EXPECT_EQ(-1, truncate(at("v1").c_str(), 0));
  EXPECT_EQ(EROFS, errno);
  EXPECT_EQ(-1, open(at("new").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(EROFS, errno);
  EXPECT_EQ(-1, unlink(main_file().c_str()));
  EXPECT_EQ(EROFS, errno);
  EXPECT_EQ(-1, rename(main_file().c_str(), at("new").c_str()));
  EXPECT_EQ(EROFS, errno);
  EXPECT_EQ(-1, mkdir(at("new").c_str(), 0700));
  EXPECT_EQ(EROFS, errno);
  EXPECT_EQ(-1, link(main_file().c_str(), at("new").c_str()));
  EXPECT_EQ(-1, symlink("main", at("new").c_str()));
  EXPECT_TRUE(noise(2, 1) == read_file(main_file()));
}

TEST_F(WritableMountNoSanitizer, ProcessesWriteSeparateParts) {
  constexpr std::size_t kPages = 400;
  const std::string s = make_store_with({noise(4 * kPages, 1)});
  serve_main(s);
  std::vector<test::Child> writers;
  for (unsigned w = 0; w < 4; ++w) {
    writers.push_back(test::start_child([&] {
      const std::string part = noise(kPages, 10 + w);
      const int fd = open(main_file().c_str(), O_RDWR | O_CLOEXEC);
      test::require(fd >= 0, "open");
      for (std::size_t page = 0; page < kPages; ++page) {
        const std::string bytes = part.substr(page * kPage, kPage);
        test::require(write_all(fd, bytes, (w * kPages + page) * kPage), "pwrite");
        if (page % 50 == w) test::require(fsync(fd) == 0, "fsync");
      }
    }));
  }
  std::string expected;
  for (unsigned w = 0; w < 4; ++w) {
    EXPECT_CHILD_EXIT(writers[w].wait(), 0);
    expected += noise(kPages, 10 + w);
  }
  // One fsync commits the writes of all of them.
  const Descriptor file(main_file(), O_RDONLY);
  ASSERT_EQ(0, fsync(file.fd()));
  EXPECT_TRUE(expected == committed(s));
}

TEST_F(WritableMountNoSanitizer, AnMsyncCommitsTheStoresOfAllMappings) {
  constexpr std::size_t kBytes = 64 * kPage;
  const std::string s = make_store_with({noise(64, 1)});
  serve_main(s);
  const auto map = [&] {
    const int fd = open(main_file().c_str(), O_RDWR | O_CLOEXEC);
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return static_cast<char*>(memory);
  };
  const std::string first = noise(32, 2), second = noise(32, 3);
  int done[2];
  ASSERT_EQ(0, pipe(done));
  const test::Child other = test::start_child([&] {
    std::memcpy(map() + kBytes / 2, second.data(), second.size());
    test::require(write(done[1], "", 1) == 1, "write");
    pause();
  });
  char* const memory = map();
  ASSERT_NE(MAP_FAILED, static_cast<void*>(memory));
  std::memcpy(memory, first.data(), first.size());
  char byte = 0;
  ASSERT_EQ(1, read(done[0], &byte, 1));
  // The other process still has its mapping.
  EXPECT_EQ(0, msync(memory, kBytes, MS_SYNC));
  EXPECT_TRUE(first + second == committed(s));
  munmap(memory, kBytes);
  close(done[0]);
  close(done[1]);
}

// Each round writes one number everywhere and commits it, until the server is killed.
TEST_F(WritableMountNoSanitizer, AKilledServerLeavesTheLastFsync) {
  constexpr std::size_t kWords = 16 * kPage / sizeof(std::uint64_t);
  const std::string s = make_store_with({std::string(kWords * sizeof(std::uint64_t), '\0')});
  std::mt19937 random(7);
  std::uint64_t last = 0;
  for (unsigned kill_number = 0; kill_number < 20; ++kill_number) {
    serve_main(s);
    ASSERT_EQ(1U, mounts()) << "the killed one is still there";
    int told[2];
    ASSERT_EQ(0, pipe(told));
    test::Child writer = test::start_child([&] {
      close(told[0]);
      const int fd = open(main_file().c_str(), O_RDWR | O_CLOEXEC);
      for (std::uint64_t n = last + 1;; ++n) {
        const std::vector<std::uint64_t> words(kWords, n);
        const auto bytes = static_cast<ssize_t>(kWords * sizeof n);
        if (pwrite(fd, words.data(), static_cast<std::size_t>(bytes), 0) != bytes) return;
        if (fsync(fd) != 0) return;
        test::require(write(told[1], &n, sizeof n) == sizeof n, "write");
      }
    });
    close(told[1]);
    // A random number of commits, then killed at a random time during the next one.
    const auto commits = 1 + random() % 10;
    for (std::uint64_t i = 0; i < commits; ++i) {
      ASSERT_EQ(static_cast<ssize_t>(sizeof last), read(told[0], &last, sizeof last));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    EXPECT_EQ(128 + SIGKILL, stop(SIGKILL));
    while (read(told[0], &last, sizeof last) == sizeof last) {
    }
    close(told[0]);
    EXPECT_CHILD_EXIT(writer.wait(), 0);
    const std::string found = committed(s);
    std::uint64_t first = 0;
    std::memcpy(&first, found.data(), sizeof first);
    EXPECT_GE(first, last);
    EXPECT_LE(first, last + 1);
    for (std::size_t w = 0; w < kWords; ++w) {
      std::uint64_t word = 0;
      std::memcpy(&word, found.data() + w * sizeof word, sizeof word);
      ASSERT_EQ(first, word) << "a commit is torn at word " << w;
    }
    last = first;
  }
  must({"verify", "--read-data", s});
}

TEST_F(WritableMountNoSanitizer, AFullDiskFailsTheFsyncAndLosesNothing) {
  const test::SmallDisk disk(64 << 20);
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const std::string s = disk / "s";
  must({"init", s});
  serve_main(s);
  const std::string small = noise(2, 1), large = noise(4000, 2);
  const Descriptor file(main_file(), O_RDWR);
  ASSERT_TRUE(write_all(file.fd(), small, 0));
  ASSERT_EQ(0, fsync(file.fd()));
  disk.fill(1 << 20);
  ASSERT_TRUE(write_all(file.fd(), large, 0));
  EXPECT_EQ(-1, fsync(file.fd()));
  EXPECT_EQ(ENOSPC, errno);
  EXPECT_NE(std::string::npos, log().find("No space left")) << log();
  EXPECT_TRUE(small == committed(s));
  EXPECT_TRUE(large == read_file(main_file()));
  disk.make_room();
  EXPECT_EQ(0, fsync(file.fd())) << std::strerror(errno);
  EXPECT_TRUE(large == committed(s));
  EXPECT_EQ(0, stop(SIGTERM));
}

TEST_F(WritableMountNoSanitizer, AFailedCommitAtTheEndIsAnError) {
  const test::SmallDisk disk(64 << 20);
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const std::string s = disk / "s";
  must({"init", s});
  serve_main(s);
  {
    const Descriptor file(main_file(), O_RDWR);
    ASSERT_EQ(0, fsync(file.fd()));
    disk.fill(1 << 20);
    ASSERT_TRUE(write_all(file.fd(), noise(4000, 2), 0));
  }
  EXPECT_EQ(9, stop(SIGTERM));
  EXPECT_NE(std::string::npos, log().find("branch 'main'")) << log();
  disk.make_room();
  EXPECT_EQ("", committed(s));
}

TEST_F(WritableMountNoSanitizer, ABranchHasOneWriter) {
  const std::string s = make_store_with({noise(2, 1)});
  serve_main(s);
  EXPECT_THROW(
      {
        try {
          const Region region = Store::open(s).open_region("main");
        } catch (const Error& error) {
          EXPECT_EQ(Errc::busy, error.code());
          EXPECT_NE(std::string::npos, std::string(error.what()).find("main"));
          throw;
        }
      },
      Error);
  fs::create_directory(path("m2"));
  expect_failure({"mount", s, path("m2"), "--writable", "main"}, 7, "busy", "main");
  // The other way round, the mount is refused.
  EXPECT_EQ(0, stop(SIGTERM));
  Store store = Store::open(s);
  const Region region = store.open_region("main");
  expect_failure({"mount", s, path("m"), "--writable", "main"}, 7, "busy", "main");
  EXPECT_TRUE(names_in(path("m")).empty());
}

TEST_F(WritableMountNoSanitizer, SeveralBranchesDuringSnapshotsAndGc) {
  const std::string first = noise(300, 1), s = make_store_with({first});
  must({"branch", s, "side", "v1"});
  serve(s, {"--writable", "main", "--writable", "side"});
  for (unsigned round = 2; round < 8; ++round) {
    for (const std::string name : {"main", "side"}) {
      const Descriptor file(at(name), O_RDWR);
      ASSERT_TRUE(write_all(file.fd(), noise(300, name == "main" ? round : 100 + round), 0));
      ASSERT_EQ(0, fsync(file.fd()));
    }
    must({"snapshot", s, "w" + std::to_string(round), "main"});
    if (round > 2) must({"rm", s, "w" + std::to_string(round - 1)});
    must({"gc", s});
  }
  EXPECT_TRUE(noise(300, 7) == read_file(at("w7")));
  EXPECT_TRUE(noise(300, 7) == read_file(at("main")));
  EXPECT_TRUE(noise(300, 107) == read_file(at("side")));
  EXPECT_TRUE(first == read_file(at("v1")));
  EXPECT_EQ(0, stop(SIGTERM));
  must({"verify", "--read-data", s});
}

TEST_F(WritableMountNoSanitizer, CommonProgramsWriteTheFile) {
  const std::string s = make_store();
  serve_main(s);
  const std::string content = noise(100, 1) + "end";
  const Result dd = run_program(
      {"dd", "if=" + file("from", content), "of=" + main_file(), "bs=10000", "conv=notrunc,fsync"});
  EXPECT_EQ(0, dd.status) << dd.err;
  EXPECT_TRUE(content == committed(s));
  EXPECT_EQ(0, run_program({"cp", file("other", "other"), main_file()}).status);
  EXPECT_EQ(0, run_program({"sync", main_file()}).status);
  EXPECT_EQ("other", committed(s));
}

// With its journal in memory a transaction is one fsync, and therefore one commit.
TEST_F(WritableMountNoSanitizer, ATransactionOfSqliteIsACommit) {
  const auto sqlite = [&](const std::string& file, const std::string& text) {
    return run_program({"sqlite3", "-batch", file, "pragma journal_mode=memory; " + text});
  };
  if (run_program({"sqlite3", "-version"}).status != 0) GTEST_SKIP() << "sqlite3 is not installed";
  const std::string s = make_store();
  serve_main(s);
  const Result made = sqlite(main_file(), "create table t(a integer primary key, b text);");
  ASSERT_EQ(0, made.status) << made.err;
  const auto before = Store::open(s).version("main").sequence;
  const Result filled =
      sqlite(main_file(),
             "with recursive n(i) as (values(1) union all select i + 1 from n where i < 5000) "
             "insert into t select i, 'value ' || i from n;");
  ASSERT_EQ(0, filled.status) << filled.err;
  EXPECT_EQ(before + 1, Store::open(s).version("main").sequence);
  // The server is killed during a transaction.
  const Descriptor file(main_file(), O_RDWR);
  ASSERT_TRUE(write_all(file.fd(), noise(3, 1), kPage));
  EXPECT_EQ(128 + SIGKILL, stop(SIGKILL));
  serve_main(s);
  const Result found = sqlite(main_file(), "pragma integrity_check; select count(*) from t;");
  EXPECT_EQ("memory\nok\n5000\n", found.out) << found.err;
}

TEST_F(WritableMountNoSanitizer, CorruptionFailsTheCall) {
  const std::string content = noise(300, 1), s = make_store_with({content});
  {
    std::fstream pack(pack_of(s), std::ios::in | std::ios::out | std::ios::binary);
    for (int at_byte = 100; at_byte < 1000; ++at_byte) {
      pack.seekp(300 * 1024 + at_byte * 128);
      pack.put('!');
    }
  }
  serve_main(s);
  const Descriptor file(main_file(), O_RDWR);
  std::string found(content.size(), '\0');
  unsigned failed = 0;
  for (std::size_t page = 0; page < 300; ++page) {
    if (pread(file.fd(), &found[page * kPage], kPage, static_cast<off_t>(page * kPage)) ==
        static_cast<ssize_t>(kPage)) {
      EXPECT_TRUE(found.substr(page * kPage, kPage) == content.substr(page * kPage, kPage));
    } else {
      EXPECT_EQ(EIO, errno);
      ++failed;
    }
  }
  EXPECT_GT(failed, 0U);
  EXPECT_LT(failed, 300U);
  EXPECT_NE(std::string::npos, log().find(".pack")) << log();
  // The server continues.
  ASSERT_TRUE(write_all(file.fd(), "good", 0));
  EXPECT_EQ(0, fsync(file.fd()));
}

TEST_F(WritableMountNoSanitizer, ErrorsNameTheirCause) {
  const std::string s = make_store_with({noise(1, 1)});
  expect_failure({"mount", s, path("m"), "--writable", "v1"}, 3, "not_found", "v1");
  expect_failure({"mount", s, path("m"), "--writable", "../x"}, 2, "invalid_argument", "../x");
  expect_failure({"mount", s, path("m"), "--writable", "at"}, 2, "invalid_argument", "at");
  Datastore::create(path("ds"), 1 << 20).commit();
  expect_failure({"mount", path("ds/store"), path("m"), "--writable", "main"}, 12, "unsupported",
                 "main");
  EXPECT_TRUE(names_in(path("m")).empty());
}

}  // namespace
}  // namespace vellum::cli_test
