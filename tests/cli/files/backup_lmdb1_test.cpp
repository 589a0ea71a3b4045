// vellum backup of an environment of LMDB 1.0. The files here have LMDB's layout, and another
// process keeps them open as LMDB does; tests against LMDB 1.0 itself are in backup_lmdb_test.cpp.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLmdbPage = 4096;
constexpr std::uint64_t kLmdbPages = 12;
constexpr std::size_t kMutexAt = 24, kMutexOfWriterAt = 64, kSecondMutexAt = 104;
constexpr std::size_t kKindOfSecondMutexAt = 120;
enum class Variant { upstream, lmdb_js };
constexpr std::size_t slots_at(Variant v) { return v == Variant::upstream ? 128 : 208; }

template <typename T>
void put(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <typename T>
T get(const std::string& bytes, std::size_t at) {
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

// MDB_meta behind the header of a page at this offset.
void put_meta(std::string& bytes, std::size_t page_at, std::uint64_t transaction,
              std::uint16_t flags = 0) {
  const std::size_t at = page_at + 24;
  put(bytes, at, std::uint32_t{0xbeefc0de});
  put(bytes, at + 4, std::uint32_t{2});
  put(bytes, at + 24, std::uint32_t{kLmdbPage});
  put(bytes, at + 28, flags);
  put(bytes, at + 112, 1000 + transaction);  // stands for the tree's root
  put(bytes, at + 120, kLmdbPages - 1);
  put(bytes, at + 128, transaction);
}

// A process that has the environment open, as far as other processes can see.
class OpenElsewhere {
 public:
  OpenElsewhere(const std::string& lock_file) {
    int ready[2];
    EXPECT_EQ(0, pipe(ready));
    process_ = fork();
    if (process_ == 0) {
      struct flock first{};
      first.l_type = F_RDLCK;
      first.l_len = 1;
      const int fd = open(lock_file.c_str(), O_RDWR | O_CLOEXEC);
      const bool held = fd >= 0 && fcntl(fd, F_SETLK, &first) == 0;
      if (!held || write(ready[1], "x", 1) != 1) _exit(1);
      for (;;) pause();
    }
    char byte = 0;
    close(ready[1]);
    EXPECT_EQ(1, read(ready[0], &byte, 1));
    close(ready[0]);
  }
  ~OpenElsewhere() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  OpenElsewhere(const OpenElsewhere&) = delete;
  OpenElsewhere& operator=(const OpenElsewhere&) = delete;
  pid_t process() const { return process_; }

 private:
  pid_t process_ = -1;
};

class BackupLmdb1NoSanitizer : public CliTest, public ::testing::WithParamInterface<Variant> {
 protected:
  BackupLmdb1NoSanitizer() { fs::create_directory(path("db")); }
  std::string file() const { return path("db/data.mdb"); }
  std::string lock_file() const { return path("db/lock.mdb"); }

  // Transaction 8 is the last one that the lock file names, and 9 has just got its meta page.
  void make_environment(std::size_t slots = 126) const {
    std::string data(kLmdbPages * kLmdbPage, '\0');
    for (std::size_t page = 2; page < kLmdbPages; ++page) data[page * kLmdbPage + 5] = 'p';
    put_meta(data, 0, 8, GetParam() == Variant::lmdb_js ? 0x1000 : 0);
    put_meta(data, kLmdbPage, 9);
    if (GetParam() == Variant::lmdb_js) put_meta(data, kLmdbPage / 2, 9);
    data += "beyond the last page of transaction 8";
    write_file(file(), data);

    std::string lock(slots_at(GetParam()) + 64 * slots, '\0');
    put(lock, 0, std::uint32_t{0xbeefc0de});
    put(lock, 4, std::uint32_t{0x2c2f6002});
    put(lock, 8, std::uint64_t{8});
    write_file(lock_file(), lock);
    const int fd = open(lock_file().c_str(), O_RDWR | O_CLOEXEC);
    auto* const at = static_cast<std::byte*>(
        mmap(nullptr, lock.size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ASSERT_NE(at, MAP_FAILED);
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
    std::vector<std::size_t> mutexes = {kMutexAt, kMutexOfWriterAt};
    if (GetParam() == Variant::lmdb_js) mutexes.push_back(kSecondMutexAt);
    for (const std::size_t mutex : mutexes)
      pthread_mutex_init(reinterpret_cast<pthread_mutex_t*>(at + mutex), &shared);
    munmap(at, lock.size());
    close(fd);
  }
  void change_lock_file(std::size_t at, std::uint32_t value) const {
    std::string bytes = read_file(lock_file());
    put(bytes, at, value);
    const int fd = open(lock_file().c_str(), O_WRONLY | O_CLOEXEC);
    EXPECT_EQ(static_cast<ssize_t>(bytes.size()), pwrite(fd, bytes.data(), bytes.size(), 0));
    close(fd);
  }
  std::size_t slot_at(std::size_t index) const { return slots_at(GetParam()) + 64 * index; }
  Arguments backup(const std::string& name = "a") const {
    return {"backup", path("store"), path("db"), "--name", name};
  }
  std::string content() const {
    fs::remove(path("exported"));
    must({"export", path("store"), "a", path("exported")});
    return read_file(path("exported"));
  }
};

TEST_P(BackupLmdb1NoSanitizer, TheLastTransactionIsTaken) {
  make_environment();
  {
    const OpenElsewhere lmdb(lock_file());
    must(backup());
  }
  const std::string copy = content(), now = read_file(file());
  ASSERT_EQ(kLmdbPages * kLmdbPage, copy.size());
  for (const std::size_t page : {std::size_t{0}, kLmdbPage}) {
    EXPECT_EQ(1008u, get<std::uint64_t>(copy, page + 24 + 112)) << "the tree of transaction 8";
  }
  EXPECT_EQ(8u, get<std::uint64_t>(copy, 24 + 128));
  EXPECT_EQ(7u, get<std::uint64_t>(copy, kLmdbPage + 24 + 128));
  EXPECT_EQ(0u, get<std::uint16_t>(copy, 24 + 28)) << "the copy is durable";
  if (GetParam() == Variant::lmdb_js) {
    EXPECT_EQ(8u, get<std::uint64_t>(copy, kLmdbPage / 2 + 24 + 128));
  }
  EXPECT_TRUE(copy.substr(2 * kLmdbPage) ==
              now.substr(2 * kLmdbPage, (kLmdbPages - 2) * kLmdbPage));
}

TEST_P(BackupLmdb1NoSanitizer, ASlotIsTakenAndGivenBack) {
  make_environment();
  const OpenElsewhere lmdb(lock_file());
  must(backup());
  const std::string lock = read_file(lock_file());
  EXPECT_EQ(1u, get<std::uint32_t>(lock, 16)) << "slots that have been used";
  EXPECT_EQ(0u, get<std::uint32_t>(lock, slot_at(0) + 8)) << "process";
  EXPECT_EQ(UINT64_MAX, get<std::uint64_t>(lock, slot_at(0))) << "transaction";
  EXPECT_NE(0u, get<std::uint64_t>(lock, slot_at(0) + 16)) << "thread";
}

// Two slots: one of a reader that lives, and one of a reader that was killed.
TEST_P(BackupLmdb1NoSanitizer, ASlotOfADeadReaderIsTaken) {
  make_environment(2);
  const OpenElsewhere lmdb(lock_file());
  pid_t dead = fork();
  if (dead == 0) _exit(0);
  waitpid(dead, nullptr, 0);
  change_lock_file(16, 2);
  change_lock_file(slot_at(0) + 8, static_cast<std::uint32_t>(dead));
  change_lock_file(slot_at(1) + 8, static_cast<std::uint32_t>(dead));
  must(backup());
  const std::string lock = read_file(lock_file());
  EXPECT_EQ(0u, get<std::uint32_t>(lock, slot_at(0) + 8));
  EXPECT_EQ(static_cast<std::uint32_t>(dead), get<std::uint32_t>(lock, slot_at(1) + 8));
}

TEST_P(BackupLmdb1NoSanitizer, ALockFileOfAnotherKindIsRefused) {
  make_environment();
  const OpenElsewhere lmdb(lock_file());
  change_lock_file(4, 0x2c2f6003);
  expect_failure(backup(), 12, "unsupported", lock_file());
  change_lock_file(4, 0x2c2f6002);
  ASSERT_EQ(0, truncate(lock_file().c_str(), 1000));
  expect_failure(backup(), 12, "unsupported", lock_file());
}

// LMDB and lmdb-js put the slots at different places, and neither makes the other's file smaller.
TEST_P(BackupLmdb1NoSanitizer, ALockFileThatBothHaveUsedIsRefused) {
  make_environment();
  const OpenElsewhere lmdb(lock_file());
  change_lock_file(kKindOfSecondMutexAt, GetParam() == Variant::lmdb_js ? 0 : 0x90);
  expect_failure(backup(), 12, "unsupported", lock_file());
}

TEST_P(BackupLmdb1NoSanitizer, ASlotOfAnInterruptedBackupIsGivenBack) {
  make_environment();
  const OpenElsewhere lmdb(lock_file());
  const Result result = run(backup(), [] {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, nullptr);
    raise(SIGTERM);  // waits
  });
  EXPECT_NE(0, result.status);
  EXPECT_NE(std::string::npos, result.err.find("interrupted")) << result.err;
  const std::string lock = read_file(lock_file());
  EXPECT_EQ(1u, get<std::uint32_t>(lock, 16)) << "slots that have been used";
  EXPECT_EQ(0u, get<std::uint32_t>(lock, slot_at(0) + 8)) << "process";
}

TEST_P(BackupLmdb1NoSanitizer, MetaPagesThatDoNotMatchTheLockFileAreRefused) {
  make_environment();
  const OpenElsewhere lmdb(lock_file());
  change_lock_file(8, 6);
  expect_failure(backup(), 7, "busy", file());
}

TEST_P(BackupLmdb1NoSanitizer, AnEnvironmentThatNobodyHasOpenIsTakenAsItIs) {
  make_environment();
  must(backup());
  EXPECT_TRUE(content() == read_file(file()));
  std::string bad = read_file(file());
  put(bad, 24 + 24, std::uint32_t{4097});
  write_file(file(), bad);
  expect_failure(backup("b"), 11, "corrupted", file());
}

INSTANTIATE_TEST_SUITE_P(Variants, BackupLmdb1NoSanitizer,
                         ::testing::Values(Variant::upstream, Variant::lmdb_js), [](const auto& p) {
                           return p.param == Variant::upstream ? "Upstream" : "LmdbJs";
                         });

}  // namespace
}  // namespace vellum::cli_test
