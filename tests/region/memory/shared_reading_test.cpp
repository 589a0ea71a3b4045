// RegionOptions::share: readers of one version share its pages, whatever becomes of one of them.
//
// VELLUM_KILLS sets the number of kills at random moments for each engine.
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "support/child.hpp"
#include "support/disk/small_disk.hpp"
#include "support/generation_fixture.hpp"
#include "support/paging.hpp"
#include "support/sanitizers.hpp"
#include "support/shared.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kSharedSize = 8 * kMiB;
constexpr std::uint64_t kSharedChunk = 64u << 10;
constexpr std::size_t kSharedChunks = kSharedSize / kSharedChunk;
constexpr std::uint64_t kSharedZeros = 2 * kMiB;  // the last ones
constexpr std::uint64_t kSharedFilled = kSharedSize - kSharedZeros;

// A directory in memory, only for the shared files of a test.
class ShareDirectory {
 public:
  ShareDirectory() {
    if (mkdtemp(path_) == nullptr) throw std::runtime_error("no directory in /dev/shm");
    setenv("VELLUM_SHARE_DIRECTORY", path_, 1);
  }
  ~ShareDirectory() {
    unsetenv("VELLUM_SHARE_DIRECTORY");
    std::filesystem::remove_all(path_);
  }
  ShareDirectory(const ShareDirectory&) = delete;
  ShareDirectory& operator=(const ShareDirectory&) = delete;
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      out.push_back(entry.path());
    return out;
  }
  std::string operator/(const std::string& name) const { return std::string(path_) + "/" + name; }

 private:
  char path_[64] = "/dev/shm/shared-reading-XXXXXX";
};

class SharedReading : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    if (IsSkipped()) return;
    Store store = create();
    Region region = store.create_region("main", kSharedSize, options());
    std::mt19937_64 random(3);
    for (std::uint64_t at = 0; at < kSharedFilled; at += 8) word_at(region, at) = random() >> 42;
    region.snapshot("0");
    for (int step = 1; step <= 3; ++step) {
      for (std::uint64_t page = static_cast<std::uint64_t>(step); page < kSharedFilled / kPage;
           page += 3)
        word_at(region, page * kPage + random() % 512 * 8) = random();
      region.snapshot(std::to_string(step));
    }
    region.close();
    content_ = content_of(store, "3");
  }
  RegionOptions sharing() const {
    RegionOptions o = options();
    o.share = true;
    return o;
  }
  Region open(const std::string& version = "3") const {
    return Store::open(path()).open_version(version, sharing());
  }
  // Bytes of the version that are in the shared file and that the region has.
  static std::uint64_t shared(const Region& region) { return region.memory_use().shared_bytes; }
  static std::uint64_t resident(const Region& region) { return region.memory_use().resident_bytes; }
  static std::vector<std::size_t> in_random_order(std::uint64_t seed) {
    std::vector<std::size_t> chunks(kSharedChunks);
    std::iota(chunks.begin(), chunks.end(), std::size_t{0});
    std::shuffle(chunks.begin(), chunks.end(), std::mt19937_64(seed));
    return chunks;
  }
  bool is_right(const Region& region, std::size_t chunk) const {
    return std::memcmp(bytes_of(region) + chunk * kSharedChunk,
                       content_.data() + chunk * kSharedChunk, kSharedChunk) == 0;
  }
  std::size_t wrong_chunks(const Region& region, std::uint64_t seed) const {
    const auto chunks = in_random_order(seed);
    return static_cast<std::size_t>(std::count_if(
        chunks.begin(), chunks.end(), [&](std::size_t chunk) { return !is_right(region, chunk); }));
  }
  // Opens, reads all and closes, so that the next opening finds shared pages.
  void leave_file_of(const std::function<void(const std::string& file)>& change) {
    Region region = open();
    ASSERT_EQ(share_.files().size(), 1U);
    const std::string file = share_.files()[0];
    region.prefetch(region.whole());
    change(file);
    Region other = open();
    EXPECT_EQ(wrong_chunks(other, 1), 0U);
    EXPECT_EQ(content_of(other), content_);
  }
  static void write_at(const std::string& file, std::uint64_t at, const std::string& bytes) {
    const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes.size()));
    close(fd);
  }
  static std::uint64_t size_of(const std::string& file) { return std::filesystem::file_size(file); }

  ShareDirectory share_;
  std::vector<std::byte> content_;
};

TEST_P(SharedReading, OneReaderLoadsForAll) {
  Region first = open();
  EXPECT_EQ(wrong_chunks(first, 1), 0U);
  EXPECT_EQ(shared(first), kSharedFilled);
  EXPECT_EQ(resident(first), kSharedFilled);
  ASSERT_EQ(share_.files().size(), 1U);
  struct stat status{};
  ASSERT_EQ(stat(share_.files()[0].c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  const auto taken = [&] {
    stat(share_.files()[0].c_str(), &status);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  };
  EXPECT_LE(taken(), kSharedFilled + 3 * kPage);
  std::vector<Region> others;
  for (std::uint64_t i = 0; i < 4; ++i) {
    others.push_back(open());
    EXPECT_EQ(wrong_chunks(others.back(), i), 0U);
    EXPECT_EQ(shared(others.back()), kSharedFilled);
  }
  EXPECT_LE(taken(), kSharedFilled + 3 * kPage);
}

TEST_P(SharedReading, EightProcessesReadAll) {
  for (const int readers : {2, 8}) {
    Shared<std::atomic<int>> ready;
    std::vector<Child> children;
    for (int i = 0; i < readers; ++i) {
      children.push_back(start_child([&, i] {
        Region region = open();
        ++*ready;
        while (*ready < readers) usleep(100);
        if (i % 4 == 3) region.prefetch(region.whole());
        if (i % 4 == 2) region.advise(region.whole(), Advice::random);
        require(wrong_chunks(region, static_cast<std::uint64_t>(i)) == 0, "all is right");
        // A page that another reader loaded later is shared when it is read again.
        require(comes_true([&] {
                  if (shared(region) == kSharedFilled) return true;
                  region.advise(region.whole(), Advice::dont_need);
                  require(wrong_chunks(region, 1) == 0, "all is right again");
                  return shared(region) == kSharedFilled;
                }),
                "all is shared");
        ++*ready;
        while (*ready < 2 * readers) usleep(100);
        region.close();
      }));
    }
    for (Child& child : children) EXPECT_CHILD_EXIT(child.wait(), 0);
    EXPECT_EQ(share_.files(), std::vector<std::string>());
  }
}

TEST_P(SharedReading, EachVersionHasItsOwnFile) {
  Region two = open("2"), three = open("3"), head = open("main");
  EXPECT_EQ(share_.files().size(), 3U);
  EXPECT_EQ(content_of(two), content_of(Store::open(path()), "2"));
  EXPECT_EQ(content_of(three), content_);
  EXPECT_EQ(content_of(head), content_);
  RegionOptions smaller = sharing();
  smaller.fault_bytes = 4096;
  const Region small = Store::open(path()).open_version("3", smaller);
  EXPECT_EQ(share_.files().size(), 4U);
  EXPECT_EQ(content_of(small), content_);
  // A copy of the store is independent.
  const std::string copy = directory_ / "copy";
  std::filesystem::copy(path(), copy, std::filesystem::copy_options::recursive);
  const Region copied = Store::open(copy).open_version("3", sharing());
  EXPECT_EQ(share_.files().size(), 5U);
}

TEST_P(SharedReading, PagesAreSharedOnlyOnRequest) {
  Region region = Store::open(path()).open_version("3", options());
  EXPECT_EQ(content_of(region), content_);
  EXPECT_EQ(shared(region), 0U);
  EXPECT_EQ(share_.files(), std::vector<std::string>());
}

TEST_P(SharedReading, TheLastReaderRemovesTheFile) {
  auto first = std::make_unique<Region>(open());
  Region second = open();
  EXPECT_EQ(wrong_chunks(*first, 1), 0U);
  first->close();
  EXPECT_EQ(share_.files().size(), 1U);
  EXPECT_EQ(wrong_chunks(second, 2), 0U);
  second.close();
  EXPECT_EQ(share_.files(), std::vector<std::string>());
}

TEST_P(SharedReading, ThreadsAndOpeningsRace) {
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < rounds(10, 3); ++round) wrong += wrong_chunks(open(), t);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(share_.files(), std::vector<std::string>());
}

// TSan starts no thread behind a fork of a process with threads.
//
// Kills a reader that fills chunks for others: its unfinished chunks are filled again, and all of
// them are shared.
TEST_P(SharedReading, AKilledFillerIsDetectedNoTsan) {
  const std::uint64_t kills = kills_wanted(60, 8);
  std::mt19937_64 random(5);
  Shared<std::atomic<int>> opened;
  for (std::uint64_t kill = 0; kill < kills; ++kill) {
    SCOPED_TRACE(kill);
    Region keeper = open();  // the file stays
    *opened = 0;
    Child child = start_child([&] {
      Region region = open();
      *opened = 1;
      wrong_chunks(region, random());
      pause();
    });
    while (*opened == 0 && child.running()) usleep(50);
    usleep(static_cast<useconds_t>(random() % 12'000));
    child.kill(SIGKILL);
    EXPECT_CHILD_SIGNAL(child.wait(), SIGKILL);
    ASSERT_EQ(wrong_chunks(keeper, random()), 0U);
    ASSERT_EQ(shared(keeper), kSharedFilled);
  }
  EXPECT_EQ(share_.files(), std::vector<std::string>());
}

// The child's system calls, entries and exits, after it has opened the version. Kills it at the
// n-th. False: it has ended before.
bool kill_at_call(const Child& child, const std::atomic<int>& opened, int n) {
  int status = 0;
  waitpid(child.pid(), &status, 0);  // it has stopped itself
  ptrace(PTRACE_SETOPTIONS, child.pid(), nullptr, PTRACE_O_TRACESYSGOOD);
  long signal = 0;
  for (int calls = 0; calls < n;) {
    ptrace(PTRACE_SYSCALL, child.pid(), nullptr, signal);
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WSTOPPED | WNOWAIT) != 0 ||
        info.si_code == CLD_EXITED || info.si_code == CLD_KILLED) {
      return false;
    }
    waitpid(child.pid(), &status, 0);
    const bool at_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    signal = at_call ? 0 : WSTOPSIG(status);
    if (at_call && opened != 0) ++calls;
  }
  child.kill(SIGKILL);
  return true;
}

TEST_P(SharedReading, AFillerIsKilledAtEachOfItsCallsNoTsan) {
  constexpr std::size_t kTouched = 2;
  Shared<std::atomic<int>> opened;
  int kills = 0;
  for (int n = 1;; n += rounds(1, 5)) {
    SCOPED_TRACE(n);
    Region keeper = open();
    keeper.advise(keeper.whole(), Advice::random);
    *opened = 0;
    Child child = start_child([&] {
      ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      raise(SIGSTOP);
      Region region = open();
      region.advise(region.whole(), Advice::random);
      *opened = 1;
      for (std::size_t chunk = 0; chunk < kTouched; ++chunk)
        require(is_right(region, chunk), "the chunk is right");
      _exit(0);
    });
    const bool killed = kill_at_call(child, *opened, n);
    EXPECT_TRUE(child.wait().died_by(SIGKILL) == killed);
    for (std::size_t chunk = 0; chunk < kTouched; ++chunk) ASSERT_TRUE(is_right(keeper, chunk));
    ASSERT_EQ(shared(keeper), kTouched * kSharedChunk);
    if (!killed) break;
    ++kills;
  }
  std::printf("%d kills\n", kills);
  EXPECT_GE(kills, rounds(20, 4));
}

// A reader that was stopped while it filled: others do without those chunks.
TEST_P(SharedReading, AStoppedFillerIsNotAwaited) {
  Region region = open();
  const int fd = ::open(share_.files()[0].c_str(), O_RDWR | O_CLOEXEC);
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_len = 16;  // chunks
  ASSERT_EQ(fcntl(fd, F_OFD_SETLK, &lock), 0);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(wrong_chunks(region, 1), 0U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(shared(region), kSharedFilled - 16 * kSharedChunk);
  EXPECT_EQ(resident(region), kSharedFilled);
  close(fd);
}

TEST_P(SharedReading, AChildOfForkHoldsNoShare) {
  Region region = open();
  EXPECT_EQ(wrong_chunks(region, 1), 0U);
  Child child = start_child([] { pause(); });
  region.close();
  EXPECT_EQ(share_.files(), std::vector<std::string>());
}

TEST_P(SharedReading, LeftoversOfKilledReadersAreRemoved) {
  Child child = start_child([&] {
    Region region = open("2");
    raise(SIGKILL);
  });
  EXPECT_CHILD_SIGNAL(child.wait(), SIGKILL);
  ASSERT_EQ(share_.files().size(), 1U);
  const std::string left = share_.files()[0];
  Region region = open("3");
  ASSERT_EQ(share_.files().size(), 1U);
  EXPECT_NE(share_.files()[0], left);
}

TEST_P(SharedReading, ChangedContentIsNotUsed) {
  leave_file_of([](const std::string& file) {
    write_at(file, 5, "x");
    write_at(file, 40 * kSharedChunk + 7000, "another content");
  });
  Region region = open();
  region.prefetch(region.whole());
  write_at(share_.files()[0], 9 * kSharedChunk, "changed before anybody else has looked");
  Region other = open();
  EXPECT_EQ(wrong_chunks(other, 4), 0U);
  EXPECT_EQ(shared(other), kSharedFilled - kSharedChunk);
}

// Each of them once for a file with readers: it is not used, and nothing is broken.
TEST_P(SharedReading, AnotherFileIsNotUsed) {
  const auto expect_unshared = [&](const std::function<void(const std::string&)>& change) {
    Region region = open();
    ASSERT_EQ(share_.files().size(), 1U);
    change(share_.files()[0]);
    Region other = open();
    EXPECT_EQ(wrong_chunks(other, 1), 0U);
    EXPECT_EQ(shared(other), 0U);
    for (const auto& file : share_.files()) std::filesystem::remove(file);
  };
  expect_unshared([](const auto& file) { write_at(file, size_of(file) - 4096 + 30, "9"); });
  expect_unshared([](const auto& file) { write_at(file, size_of(file) - 1, "x"); });
  expect_unshared(
      [](const auto& file) { std::filesystem::resize_file(file, size_of(file) + 4096); });
  expect_unshared([](const auto& file) { chmod(file.c_str(), 0644); });
  expect_unshared(
      [](const auto& file) { std::filesystem::create_hard_link(file, file + "-other"); });
  if (geteuid() == 0) {
    expect_unshared([](const auto& file) { ASSERT_EQ(chown(file.c_str(), 12345, 0), 0); });
  }
}

TEST_P(SharedReading, AnUntrustedFileOfTheNameIsNotUsed) {
  std::string name;
  {
    Region region = open();
    name = share_.files()[0];
  }
  const std::string victim = share_ / "victim";
  const auto expect_private = [&] {
    Region region = open();
    EXPECT_EQ(wrong_chunks(region, 1), 0U);
    EXPECT_EQ(shared(region), 0U);
    region.close();
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::symlink_status(name)));
    std::filesystem::remove(name);
  };
  close(::open(victim.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  std::filesystem::create_symlink(victim, name);
  expect_private();
  EXPECT_EQ(size_of(victim), 0U);
  ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
  expect_private();
  std::filesystem::create_directory(name);
  expect_private();
  std::filesystem::create_hard_link(victim, name);
  expect_private();
  EXPECT_EQ(size_of(victim), 0U);
}

TEST_P(SharedReading, OnAFullFileSystemPagesArePrivate) {
  const SmallDisk disk(2 * kMiB);
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  setenv("VELLUM_SHARE_DIRECTORY", (disk / "").c_str(), 1);
  Region region = open(), other = open();
  EXPECT_EQ(wrong_chunks(region, 1), 0U);
  EXPECT_EQ(wrong_chunks(other, 2), 0U);
  for (const Region* one : {&region, &other}) {
    EXPECT_GT(shared(*one), kMiB);
    EXPECT_LT(shared(*one), 2 * kMiB);
    EXPECT_EQ(resident(*one), kSharedFilled);
  }
  setenv("VELLUM_SHARE_DIRECTORY", directory_.path().c_str(), 1);  // a disk
  Region third = open();
  EXPECT_EQ(wrong_chunks(third, 3), 0U);
  EXPECT_EQ(shared(third), 0U);
}

// A thread that has faulted continues as soon as the page is there.
TEST_P(SharedReading, AChunkCountsBeforeItsFaultEnds) {
  const SmallDisk disk(2 * kMiB);
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  for (const std::string& directory : {directory_.path(), disk / "", share_ / ""}) {
    setenv("VELLUM_SHARE_DIRECTORY", directory.c_str(), 1);
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      Region region = open();
      std::uint64_t accessed = 0;
      for (const std::size_t chunk : in_random_order(seed)) {
        ASSERT_TRUE(is_right(region, chunk)) << chunk;
        if (chunk < kSharedFilled / kSharedChunk) accessed += kSharedChunk;
        ASSERT_GE(resident(region), accessed) << directory;
      }
    }
  }
}

TEST_P(SharedReading, SharedPagesStayWithinTheLimit) {
  constexpr std::uint64_t kLimit = 4 * kMiB;
  RegionOptions small = sharing();
  small.memory_limit_bytes = kLimit;
  Store store = Store::open(path());
  Region region = store.open_version("3", small);
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    for (const std::size_t chunk : in_random_order(seed)) {
      ASSERT_TRUE(is_right(region, chunk)) << chunk;
      ASSERT_LE(resident(region), kLimit + 4 * kSharedChunk);
    }
  }
  // A thread that helps is perhaps bringing in a chunk just now.
  EXPECT_LE(shared(region), kLimit / 2 + 4 * kSharedChunk);
  EXPECT_GT(shared(region), 0U);
  // The smaller one maps and evicts chunks that a larger one fills.
  Region large = open();
  EXPECT_EQ(wrong_chunks(large, 1), 0U);
  for (const std::size_t chunk : in_random_order(5)) {
    ASSERT_TRUE(is_right(region, chunk)) << chunk;
    ASSERT_LE(resident(region), kLimit + 4 * kSharedChunk);
  }
  region.advise(region.whole(), Advice::dont_need);
  // A helper thread may still load the last chunks.
  EXPECT_LE(resident(region), kLimit / 2 + 4 * kSharedChunk);
  EXPECT_EQ(wrong_chunks(large, 2), 0U);
  EXPECT_EQ(content_of(region), content_);
}

TEST_P(SharedReading, GcRunsWhilePagesAreShared) {
  Store store = Store::open(path());
  Region region = open("1"), other = open("1");
  const auto content = content_of(store, "1");
  EXPECT_EQ(std::memcmp(bytes_of(region), content.data(), kMiB), 0);
  store.remove_snapshot("1");
  store.collect_garbage();
  EXPECT_EQ(content_of(other), content);
  EXPECT_EQ(content_of(region), content);
}

TEST_P(SharedReading, SharingWorksWithOtherOptions) {
  for (const bool by_thread : {false, true}) {
    RegionOptions o = sharing();
    o.fault_thread = by_thread;
    o.working_set = !by_thread;
    for (int round = 0; round < 2; ++round) {
      Region region = Store::open(path()).open_version("3", o);
      const Pin pin = region.pin({kMiB, kMiB});
      EXPECT_EQ(wrong_chunks(region, 1), 0U);
      EXPECT_EQ(shared(region), kSharedFilled);
    }
  }
  RegionOptions huge = sharing();
  huge.huge_pages = true;
  Region region = Store::open(path()).open_version("3", huge);
  EXPECT_EQ(wrong_chunks(region, 1), 0U);
  EXPECT_EQ(shared(region), 0U);
}

VELLUM_BOTH_ENGINES(SharedReading);

}  // namespace
}  // namespace vellum::test
