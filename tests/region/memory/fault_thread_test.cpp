// RegionOptions::fault_thread: a thread loads pages, whatever handlers the program has.
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <random>
#include <thread>

#include "support/child.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

RegionOptions by_thread() {
  RegionOptions options;
  options.engine = Engine::uffd;
  options.fault_thread = true;
  options.encoding.emplace().deltas = false;
  return options;
}

constexpr std::uint64_t kBytes = 16 * kMiB;

class FaultThreads : public testing::Test {
 protected:
  void SetUp() override {
    if (!engine_available(Engine::uffd)) GTEST_SKIP() << kNoUffd;
    Store store = Store::create(path());
    Region region = store.create_region("main", kBytes, by_thread());
    // Words that do not compress, in all but one of eight MiB.
    std::mt19937_64 random(1);
    for (std::uint64_t at = 0; at < kBytes; at += 8) {
      if (at / kMiB % 8 != 3) word_at(region, at) = random() | 1;
    }
    region.snapshot("first");
    content_ = content_of(region);
  }
  std::string path() const { return directory_ / "store"; }

  TempDirectory directory_;
  std::vector<std::byte> content_;
};

void does_not_pass_on(int) { _exit(78); }

const ChildProgram kForeignHandlers("foreign handlers", [](const auto& arguments) {
  Store store = Store::open(arguments.at(0));
  Region region = store.open_region("main", by_thread());
  Region version = store.open_version("first", by_thread());
  for (const int number : {SIGBUS, SIGSEGV}) {
    require(signal(number, does_not_pass_on) == SIG_DFL, "the library installs no handler");
  }
  for (std::uint64_t at = 0; at < kBytes; at += kPage) {
    require(word_at(region, at) == word_at(version, at), "the content");
    word_at(region, at + 8) = at;
    if (at % (4 * kMiB) == 0) region.commit();
  }
  region.commit();
  region.rollback();
  require(word_at(region, kMiB + 8) == kMiB, "what was committed");
});

TEST_F(FaultThreads, OtherSignalHandlersDoNotMatter) {
  const auto end = run_program("foreign handlers", {path()});
  EXPECT_CHILD_EXIT(end, 0);
  EXPECT_EQ(end.standard_error, "");
}

TEST_F(FaultThreads, ManyThreadsAtOnce) {
  Store store = Store::open(path());
  Region version = store.open_version("first", by_thread());
  Region region = store.open_region("main", by_thread());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 4000; ++i) {
        const std::uint64_t at = random() % (kBytes / 64) * 64 + t * 8;
        std::uint64_t expected = 0;
        std::memcpy(&expected, content_.data() + at, 8);
        if (word_at(version, at) != expected || word_at(region, at) != expected) ++wrong;
        if (i % 16 == 0) word_at(region, at) = expected;  // a write fault, the same content
      }
    });
  }
  for (int i = 0; i < 20; ++i) region.commit();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(content_of(region), content_);
}

TEST_F(FaultThreads, RegionsLargerThanMemory) {
  Store store = Store::open(path());
  RegionOptions options = by_thread();
  options.memory_limit_bytes = 2 * kMiB;
  Region region = store.open_region("main", options);
  for (std::uint64_t at = 0; at < kBytes; at += kPage) word_at(region, at) = at;
  for (std::uint64_t at = 0; at < kBytes; at += kPage) ASSERT_EQ(word_at(region, at), at);
  EXPECT_GT(region.memory_use().evicted_bytes, 0u);
  region.commit();
  EXPECT_EQ(word_at(region, 5 * kPage), 5 * kPage);
}

TEST_F(FaultThreads, SystemCallsWaitWithThePrivilege) {
  Store store = Store::open(path());
  Region version = store.open_version("first", by_thread());
  Region region = store.open_region("main", by_thread());
  const int fd = memfd_create("data", MFD_CLOEXEC);
  const long written = syscall(SYS_pwrite64, fd, version.data(), kBytes, 0);
  const long read = syscall(SYS_pread64, fd, bytes_of(region) + kMiB, 100, 0);
  if (!version.serves_system_calls()) {
    EXPECT_EQ(written, -1);
    EXPECT_EQ(read, -1);
    close(fd);
    GTEST_SKIP() << "this process may not have a userfaultfd that answers system calls";
  }
  EXPECT_EQ(written, static_cast<long>(kBytes));
  EXPECT_EQ(read, 100);
  std::vector<std::byte> copy(kBytes);
  EXPECT_EQ(pread(fd, copy.data(), kBytes, 0), static_cast<ssize_t>(kBytes));
  EXPECT_EQ(copy, content_);
  EXPECT_EQ(std::memcmp(bytes_of(region) + kMiB, content_.data(), 100), 0);
  close(fd);
  region.commit();
  EXPECT_EQ(content_of(store, "main")[kMiB], content_[0]);
}

const ChildProgram kLostPage("lost page by thread", [](const auto& arguments) {
  Store store = Store::open(arguments.at(0));
  Region version = store.open_version("first", by_thread());
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < kBytes; at += kPage) sum += word_at(version, at);
  require(sum == 0, "a corrupted page was read");
});

TEST_F(FaultThreads, ATouchOfACorruptedPageIsSigbus) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path())) {
    if (entry.path().extension() != ".pack") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(5 * kMiB);
    file.write("damage", 6);
  }
  const auto end = run_program("lost page by thread", {path()});
  EXPECT_CHILD_SIGNAL(end, SIGBUS);
  EXPECT_NE(end.standard_error.find("first"), std::string::npos) << end.standard_error;
}

TEST_F(FaultThreads, OtherEnginesIgnoreTheOption) {
  Store store = Store::open(path());
  RegionOptions options = by_thread();
  options.engine = Engine::sigsegv;
  Region version = store.open_version("first", options);
  EXPECT_EQ(version.engine(), Engine::sigsegv);
  EXPECT_FALSE(version.serves_system_calls());
  EXPECT_EQ(content_of(version), content_);
}

}  // namespace
}  // namespace vellum::test
