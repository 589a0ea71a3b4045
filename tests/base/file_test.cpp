#include "base/files/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/bytes.hpp"
#include "base/expect_error.hpp"
#include "base/temp_directory.hpp"

namespace vellum::base {
namespace {

using test::Bytes;
using test::random_bytes;
using test::to_bytes;
using test::to_text;

class FileTest : public testing::Test {
 protected:
  std::unique_ptr<File> create(const std::string& name, const Bytes& content = {}) {
    auto file = fs.open(directory / name, OpenMode::create_new);
    file->pwrite(content, 0);
    return file;
  }

  Fs& fs = posix_fs();
  test::TempDirectory directory;
};

TEST_F(FileTest, NextDataLeavesOutHoles) {
  const auto file = create("holes");
  file->pwrite(to_bytes("x"), 1u << 20);
  file->truncate(4u << 20);
  const std::uint64_t found = file->next_data(0);
  EXPECT_TRUE(found == 0 || found == 1u << 20) << found;  // 0: a file system without holes
  EXPECT_EQ(file->next_data(1u << 20), 1u << 20);
  const std::uint64_t behind = file->next_data(2u << 20);
  EXPECT_TRUE(behind == 2u << 20 || behind == UINT64_MAX) << behind;
  EXPECT_EQ(file->next_data(8u << 20), UINT64_MAX);  // past the end
}

TEST_F(FileTest, ReadsBackWhatWasWritten) {
  const Bytes content = random_bytes(300'000, 1);
  const auto file = create("f");
  file->pwrite(std::span(content).subspan(1000), 1000);
  file->pwrite(std::span(content).first(1000), 0);
  file->sync_data();
  Bytes back(content.size());
  file->pread(back, 0);
  EXPECT_EQ(back, content);
  EXPECT_EQ(file->size_bytes(), content.size());
  EXPECT_EQ(file->path(), directory / "f");

  const auto again = fs.open(directory / "f", OpenMode::read_only);
  Bytes middle(10);
  again->pread(middle, 1234);
  EXPECT_TRUE(std::equal(middle.begin(), middle.end(), content.begin() + 1234));
}

TEST_F(FileTest, WritePastTheEndLeavesZeros) {
  const auto file = create("f");
  file->pwrite(to_bytes("end"), 5000);
  Bytes head(5000);
  file->pread(head, 0);
  EXPECT_EQ(head, Bytes(5000));
}

TEST_F(FileTest, ReadPastTheEndIsTruncation) {
  const auto file = create("f", random_bytes(100, 1));
  Bytes out(101);
  EXPECT_ERRC(file->pread(out, 0), Errc::corrupted);
  EXPECT_ERRC(file->pread(out, 1000), Errc::corrupted);
  EXPECT_EQ(file->try_pread(out, 0), ENODATA);
  file->pread({}, 1000);
}

TEST_F(FileTest, TryPreadKeepsErrno) {
  const auto file = create("f", random_bytes(100, 1));
  Bytes out(200);
  errno = EXDEV;
  EXPECT_EQ(file->try_pread(out, std::uint64_t{1} << 63), EINVAL);
  EXPECT_EQ(file->try_pread(std::span(out).first(100), 0), 0);
  EXPECT_EQ(errno, EXDEV);
}

TEST_F(FileTest, ModesDoWhatTheySay) {
  EXPECT_ERRC(fs.open(directory / "f", OpenMode::read_only), Errc::not_found);
  EXPECT_ERRC(fs.open(directory / "f", OpenMode::read_write), Errc::not_found);
  create("f", to_bytes("old"));
  EXPECT_ERRC(fs.open(directory / "f", OpenMode::create_new), Errc::already_exists);
  const auto reader = fs.open(directory / "f", OpenMode::read_only);
  EXPECT_ERRC(reader->pwrite(to_bytes("new"), 0), Errc::io);
  fs.open(directory / "f", OpenMode::read_write)->pwrite(to_bytes("new"), 0);
  EXPECT_EQ(to_text(read_whole(fs, directory / "f", 100)), "new");
}

TEST_F(FileTest, MessagesNamePathAndReason) {
  try {
    fs.open(directory / "missing", OpenMode::read_only);
    FAIL();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(directory / "missing"), std::string::npos) << message;
    EXPECT_NE(message.find("No such file"), std::string::npos) << message;
  }
}

TEST_F(FileTest, DescriptorsAreNotInherited) {
  create("f");
  const int next = ::dup(0);
  ::close(next);
  const auto file = fs.open(directory / "f", OpenMode::read_only);
  EXPECT_EQ(::fcntl(next, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST_F(FileTest, SymbolicLinksAreRefused) {
  create("target", to_bytes("secret"));
  ASSERT_EQ(::symlink((directory / "target").c_str(), (directory / "link").c_str()), 0);
  ASSERT_EQ(::symlink((directory / "nowhere").c_str(), (directory / "dangling").c_str()), 0);
  EXPECT_ERRC(fs.open(directory / "link", OpenMode::read_only), Errc::corrupted);
  EXPECT_ERRC(fs.open(directory / "link", OpenMode::read_write), Errc::corrupted);
  EXPECT_ERRC(fs.open(directory / "dangling", OpenMode::create_new), Errc::already_exists);
  EXPECT_FALSE(fs.exists(directory / "nowhere"));
  EXPECT_TRUE(fs.exists(directory / "dangling"));
}

TEST_F(FileTest, WhatIsNotARegularFileIsRefusedWithoutBlocking) {
  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
  fs.make_directory(directory / "dir");
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (directory / "socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(listener);
  for (const std::string& path :
       {directory / "fifo", directory / "dir", directory / "socket", std::string("/dev/null")}) {
    EXPECT_ERRC(fs.open(path, OpenMode::read_only), Errc::corrupted);
    EXPECT_ERRC(fs.open(path, OpenMode::read_write), Errc::corrupted);
  }
}

TEST_F(FileTest, TruncateAllocatePunch) {
  const auto file = create("f");
  file->allocate(0, 1 << 20);
  EXPECT_EQ(file->size_bytes(), 1u << 20);
  EXPECT_GE(file->allocated_bytes(), 1u << 20);

  const Bytes content = random_bytes(1 << 20, 1);
  file->pwrite(content, 0);
  file->sync_data();
  file->punch(4096, 512 << 10);
  EXPECT_EQ(file->size_bytes(), 1u << 20);
  EXPECT_LT(file->allocated_bytes(), 600u << 10);
  Bytes hole(512 << 10);
  file->pread(hole, 4096);
  EXPECT_EQ(hole, Bytes(512 << 10));
  Bytes kept(4096);
  file->pread(kept, 0);
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), content.begin()));

  file->truncate(10);
  EXPECT_EQ(file->size_bytes(), 10u);
  file->truncate(20);
  EXPECT_EQ(file->size_bytes(), 20u);
}

TEST_F(FileTest, LockExcludesOtherOpens) {
  const auto first = create("f");
  const auto second = fs.open(directory / "f", OpenMode::read_write);
  EXPECT_TRUE(first->try_lock_exclusive());
  EXPECT_TRUE(first->try_lock_exclusive());  // already locked
  EXPECT_FALSE(second->try_lock_exclusive());
}

// Runs body in a child process. Its exit code is whether body returned true.
template <typename Body>
bool in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    bool ok = false;
    try {
      ok = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(ok ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

using Lock = bool (*)(File&);
constexpr Lock kLocks[] = {
    [](File& file) { return file.try_lock_exclusive(); },
    [](File& file) { return file.try_lock_byte(1ULL << 40); },
    [](File& file) { return file.pin_byte(1ULL << 40); },
};

// The locks belong to the open file, which a child of fork() shares.
TEST_F(FileTest, AChildHoldsNoLockOfItsKilledParent) {
  const std::string path = directory / "f";
  create("f");
  for (const Lock lock : kLocks) {
    int ready[2], end[2];
    ASSERT_EQ(::pipe(ready), 0);
    ASSERT_EQ(::pipe(end), 0);
    const pid_t holder = ::fork();
    if (holder == 0) {
      const auto file = fs.open(path, OpenMode::read_write);
      bool ok = lock(*file);
      if (::fork() == 0) {
        // It reads its open file, and writes nothing.
        std::vector<std::byte> bytes(1);
        ok = ok && file->try_pread(bytes, 0) != EBADF && file->size_bytes() == 0;
        const char c = ok ? 1 : 0;
        if (::write(ready[1], &c, 1) != 1) ::_exit(1);
        ::close(end[1]);
        char none = 0;
        [[maybe_unused]] const auto n = ::read(end[0], &none, 1);
        ::_exit(0);
      }
      ::pause();
      ::_exit(1);
    }
    char ok = 0;
    ASSERT_EQ(::read(ready[0], &ok, 1), 1);
    EXPECT_EQ(ok, 1);
    const auto file = fs.open(path, OpenMode::read_write);
    EXPECT_FALSE(file->try_lock_exclusive() && file->try_lock_byte(1ULL << 40));
    ::kill(holder, SIGKILL);
    int status = 0;
    ::waitpid(holder, &status, 0);
    EXPECT_TRUE(file->try_lock_exclusive());
    EXPECT_TRUE(file->try_lock_byte(1ULL << 40));
    for (const int fd : {ready[0], ready[1], end[0], end[1]}) ::close(fd);
  }
}

TEST_F(FileTest, ALockOfAByteExcludesOthersOfIt) {
  const auto first = create("f");
  const auto second = fs.open(directory / "f", OpenMode::read_write);
  EXPECT_FALSE(second->byte_locked(7));
  EXPECT_TRUE(first->try_lock_byte(7));
  EXPECT_TRUE(first->try_lock_byte(7));  // already locked
  EXPECT_FALSE(first->byte_locked(7)) << "by another";
  EXPECT_TRUE(second->byte_locked(7));
  EXPECT_FALSE(second->try_lock_byte(7));
  EXPECT_FALSE(second->pin_byte(7));
  EXPECT_TRUE(second->try_lock_byte(8));
  first->unpin_byte(7);
  EXPECT_TRUE(second->pin_byte(7));
  EXPECT_FALSE(first->byte_locked(7)) << "it is pinned, not locked";
  EXPECT_FALSE(first->try_lock_byte(7));
  const auto reader = fs.open(directory / "f", OpenMode::read_only);
  EXPECT_ERRC(reader->try_lock_byte(9), Errc::io);
  EXPECT_TRUE(reader->pin_byte(9));
}

TEST_F(FileTest, LockHoldsBetweenProcessesAndDiesWithItsHolder) {
  const std::string path = directory / "f";
  create("f");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto file = fs.open(path, OpenMode::read_write);
    const char locked = file->try_lock_exclusive() ? 1 : 0;
    if (::write(ready[1], &locked, 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(1);
  }
  char locked = 0;
  ASSERT_EQ(::read(ready[0], &locked, 1), 1);
  EXPECT_EQ(locked, 1);
  const auto file = fs.open(path, OpenMode::read_write);
  EXPECT_FALSE(file->try_lock_exclusive());
  ::kill(holder, SIGKILL);
  int status = 0;
  ::waitpid(holder, &status, 0);
  EXPECT_TRUE(file->try_lock_exclusive());
  EXPECT_TRUE(in_child([&] { return !fs.open(path, OpenMode::read_write)->try_lock_exclusive(); }));
  ::close(ready[0]);
  ::close(ready[1]);
}

// A write that cannot be completed is an error, and the earlier content remains readable.
TEST_F(FileTest, FullFileSystemIsNoSpace) {
  const std::string mount_point = directory / "tiny";
  fs.make_directory(mount_point);
  if (::mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "cannot mount a tmpfs: " << std::strerror(errno);
  }
  {
    const auto file = fs.open(mount_point + "/f", OpenMode::create_new);
    const Bytes content = random_bytes(16 << 10, 1);
    file->pwrite(content, 0);
    EXPECT_ERRC(file->pwrite(random_bytes(128 << 10, 2), 16 << 10), Errc::no_space);
    EXPECT_ERRC(file->allocate(0, 1 << 20), Errc::no_space);
    Bytes back(content.size());
    file->pread(back, 0);
    EXPECT_EQ(back, content);
    EXPECT_ERRC(publish_file(fs, mount_point, mount_point, "g", random_bytes(64 << 10, 3), true),
                Errc::no_space);
    EXPECT_EQ(fs.list(mount_point).size(), 1u);  // no g, and no file in tmp
  }
  EXPECT_EQ(::mount("tmpfs", mount_point.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k"), 0);
  EXPECT_ERRC(fs.open(mount_point + "/new", OpenMode::create_new), Errc::read_only);
  ::umount2(mount_point.c_str(), MNT_DETACH);
}

TEST_F(FileTest, FileSizeLimitIsAnError) {
  const std::string path = directory / "f";
  EXPECT_TRUE(in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{8192, 8192};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto file = fs.open(path, OpenMode::create_new);
    try {
      file->pwrite(Bytes(10'000), 0);  // a short write first, then EFBIG
    } catch (const Error& error) {
      return error.code() == Errc::no_space && file->size_bytes() == 8192;
    }
    return false;
  }));
}

TEST_F(FileTest, TransfersAboveTheKernelsLimitPerCallNoSanitizer) {
  // Linux moves at most 0x7ffff000 bytes a call; a sparse file and untouched memory make it cheap.
  constexpr std::size_t size = (std::size_t{2} << 30) + 8192;
  const auto file = create("f");
  file->truncate(size);
  file->pwrite(to_bytes("last"), size - 4);
  Bytes back(size);
  file->pread(back, 0);
  EXPECT_EQ(to_text(std::span(back).last(4)), "last");
}

TEST_F(FileTest, RenameReplacesAndRenameNewDoesNot) {
  create("a", to_bytes("a"));
  create("b", to_bytes("b"));
  EXPECT_ERRC(fs.rename_new(directory / "a", directory / "b"), Errc::already_exists);
  EXPECT_EQ(to_text(read_whole(fs, directory / "b", 10)), "b");
  fs.rename(directory / "a", directory / "b");
  EXPECT_EQ(to_text(read_whole(fs, directory / "b", 10)), "a");
  EXPECT_FALSE(fs.exists(directory / "a"));
  fs.rename_new(directory / "b", directory / "c");
  EXPECT_TRUE(fs.exists(directory / "c"));
  EXPECT_ERRC(fs.rename(directory / "none", directory / "d"), Errc::not_found);
  EXPECT_ERRC(fs.rename_new(directory / "none", directory / "d"), Errc::not_found);
}

TEST_F(FileTest, UnlinkAndDirectories) {
  create("f");
  fs.unlink(directory / "f");
  EXPECT_ERRC(fs.unlink(directory / "f"), Errc::not_found);
  fs.make_directory(directory / "d");
  EXPECT_ERRC(fs.make_directory(directory / "d"), Errc::already_exists);
  fs.open(directory / "d/f", OpenMode::create_new);
  EXPECT_ANY_THROW(fs.remove_directory(directory / "d"));
  fs.unlink(directory / "d/f");
  fs.sync_directory(directory / "d");
  fs.remove_directory(directory / "d");
  EXPECT_ERRC(fs.sync_directory(directory / "d"), Errc::not_found);
  EXPECT_FALSE(fs.exists(directory / "d"));
  EXPECT_FALSE(fs.exists(directory / "d/below"));
}

TEST_F(FileTest, ListIsSortedAndFollowsNoLinks) {
  create("b");
  create("a");
  fs.make_directory(directory / "c");
  ASSERT_EQ(::symlink("c", (directory / "d").c_str()), 0);
  ASSERT_EQ(::symlink("a", (directory / "e").c_str()), 0);
  const std::vector<DirEntry> entries = fs.list(directory.path());
  ASSERT_EQ(entries.size(), 5u);
  const std::string names[] = {"a", "b", "c", "d", "e"};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(entries[i].name, names[i]);
    EXPECT_EQ(entries[i].is_regular_file, i < 2) << names[i];
    EXPECT_EQ(entries[i].is_directory, i == 2) << names[i];
  }
  EXPECT_ERRC(fs.list(directory / "none"), Errc::not_found);
}

TEST_F(FileTest, ReadWholeHasALimit) {
  create("f", random_bytes(100, 1));
  EXPECT_EQ(read_whole(fs, directory / "f", 100), random_bytes(100, 1));
  EXPECT_ERRC(read_whole(fs, directory / "f", 99), Errc::corrupted);
  create("empty");
  EXPECT_TRUE(read_whole(fs, directory / "empty", 0).empty());
}

using Offsets = std::vector<std::uint64_t>;

TEST_F(FileTest, PinsAreSeenByOthersAndDieWithTheirFile) {
  const auto path = create("f")->path();
  const auto looking = fs.open(path, OpenMode::read_only);
  auto first = fs.open(path, OpenMode::read_only);
  auto second = fs.open(path, OpenMode::read_only);
  EXPECT_EQ(looking->pinned_bytes(), Offsets{});
  for (const std::uint64_t at : Offsets{5000, 64, 128, 1 << 30}) EXPECT_TRUE(first->pin_byte(at));
  EXPECT_TRUE(second->pin_byte(64));
  EXPECT_TRUE(second->pin_byte(65));  // a neighbour
  EXPECT_EQ(looking->pinned_bytes(), (Offsets{64, 65, 128, 5000, 1 << 30}));
  EXPECT_EQ(second->pinned_bytes(), (Offsets{64, 128, 5000, 1 << 30}));  // not its own
  first->unpin_byte(64);
  first->unpin_byte(128);
  EXPECT_EQ(looking->pinned_bytes(), (Offsets{64, 65, 5000, 1 << 30}));
  first.reset();
  EXPECT_EQ(looking->pinned_bytes(), (Offsets{64, 65}));
  EXPECT_TRUE(in_child([&] { return looking->pinned_bytes() == Offsets{64, 65}; }));
}

TEST_F(FileTest, ReplacedWhenItsNameIsAnothers) {
  const auto file = create("f", to_bytes("old"));
  EXPECT_FALSE(file->replaced());
  ASSERT_EQ(::link(file->path().c_str(), (directory / "backup").c_str()), 0);
  EXPECT_FALSE(file->replaced());
  create("g", to_bytes("new"));
  fs.rename(directory / "g", file->path());
  EXPECT_TRUE(file->replaced());  // although it still has a name
  Bytes content(3);
  file->pread(content, 0);
  EXPECT_EQ(to_text(content), "old");
  const auto now = fs.open(file->path(), OpenMode::read_only);
  EXPECT_FALSE(now->replaced());
  fs.unlink(file->path());
  EXPECT_TRUE(now->replaced());
}

}  // namespace
}  // namespace vellum::base
