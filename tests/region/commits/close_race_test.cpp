// close() concurrently with calls of other threads: it waits for calls that have begun, and refuses
// later ones.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <barrier>
#include <fstream>
#include <functional>
#include <thread>
#include <vellum/atomic_file.hpp>

#include "region/api/store_impl.hpp"
#include "region/region_impl.hpp"
#include "store/catalog/store_directory.hpp"
#include "support/disk/hook_fs.hpp"
#include "support/gate.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

// Waits until the thread has ended, or sleeps in a system call, as a thread that waits for a lock
// does.
void wait_until_asleep(pid_t thread, const std::atomic<bool>& ended) {
  const std::string file = "/proc/self/task/" + std::to_string(thread) + "/stat";
  while (!ended) {
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto name_end = text.rfind(')');
    if (name_end == std::string::npos || text.compare(name_end, 3, ") S") == 0) return;
    std::this_thread::yield();
  }
}

struct Call {
  const char* what;
  std::function<void(Region&)> call;
};

const std::vector<Call>& calls() {
  static const std::vector<Call> all = {
      {"commit", [](Region& r) { r.commit(); }},
      {"commit_ranges", [](Region& r) { r.commit_ranges({{0, kPage}}); }},
      {"commit_async", [](Region& r) { r.commit_async().get(); }},
      {"snapshot", [](Region& r) { r.snapshot("s"); }},
      {"snapshot_async", [](Region& r) { r.snapshot_async("s").get(); }},
      {"rollback", [](Region& r) { r.rollback(); }},
      {"grow", [](Region& r) { r.grow(2 * kMiB); }},
      {"resize_file", [](Region& r) { r.resize_file(kMiB / 2); }},
      {"drop_copies", [](Region& r) { r.drop_copies({{0, kPage}}); }},
      {"begin", [](Region& r) { (void)r.begin(); }},
      {"checkout", [](Region& r) { r.checkout("base"); }},
      {"root", [](Region& r) { (void)r.root<std::uint64_t>(); }},
      {"range_of",
       [](Region& r) {
         if (const void* at = r.data()) (void)r.range_of(at, kMiB);
       }},
      {"pin", [](Region& r) { (void)r.pin({0, kMiB}); }},
      {"prefetch", [](Region& r) { r.prefetch({0, kMiB}); }},
      {"prefetch_ranges",
       [](Region& r) { r.prefetch(std::vector<ByteRange>{{0, kPage}, {kPage, kPage}}); }},
      {"zero", [](Region& r) { r.zero({0, kMiB}); }},
      {"advise", [](Region& r) { r.advise({0, kMiB}, Advice::will_need); }},
      {"memory_use", [](Region& r) { (void)r.memory_use(); }},
      {"name", [](Region& r) { (void)r.name(); }},
      {"sequence", [](Region& r) { (void)r.sequence(); }},
      {"sizes", [](Region& r) { (void)(r.size_bytes() + r.capacity_bytes() + r.file_bytes()); }},
      {"kind", [](Region& r) { (void)(r.valid() && r.writable() && r.engine() == Engine::uffd); }},
      {"close", [](Region& r) { r.close(); }},
  };
  return all;
}

// A call in a thread of its own.
class CallingThread {
 public:
  explicit CallingThread(std::function<void()> call)
      : thread_([this, call = std::move(call)] {
          id_ = static_cast<pid_t>(::syscall(SYS_gettid));
          call();
          ended_ = true;
        }) {}
  // Waits until the call has returned, or waits for a lock.
  void wait_until_asleep() const {
    while (id_ == 0) std::this_thread::yield();
    test::wait_until_asleep(id_, ended_);
  }
  bool ended() const noexcept { return ended_; }
  void join() { thread_.join(); }

 private:
  std::atomic<pid_t> id_{0};
  std::atomic<bool> ended_{false};
  std::thread thread_;  // last: it uses the members above
};

// Whether the call was made, and not refused because the region was closed.
bool made(const Call& call, Region& region) {
  try {
    call.call(region);
    return true;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::invalid_argument) << call.what << ": " << e.what();
    return false;
  }
}

class CloseRace : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    if (IsSkipped()) return;
    Store store = create();
    Region region = store.create_region("main", kMiB, options());
    std::memset(region.data(), 1, kMiB);
    region.snapshot("base");
  }
};

// A commit is in the middle of its write when close() is called.
TEST_P(CloseRace, ACommitThatHasBegunEndsFirst) {
  HookFs fs(base::posix_fs());
  Store store = StoreAccess::handle_of(store::StoreDirectory::open(fs, path()));
  Region region = store.open_region("main", options());
  Gate gate;
  std::atomic<bool> armed{true};
  fs.hooks.before_write = [&](const std::string& file) {
    if (file.ends_with("/journal") && armed.exchange(false)) gate.pass();
  };
  word_at(region, 0) = 99;
  bool committed = false;
  std::thread committer([&] { committed = made(calls().front(), region); });
  gate.wait_for_arrival();
  CallingThread closer([&] { region.close(); });
  closer.wait_until_asleep();
  EXPECT_FALSE(closer.ended());
  gate.open();
  committer.join();
  closer.join();
  EXPECT_TRUE(committed);
  EXPECT_FALSE(region.valid());
  EXPECT_EQ(word_at(Store::open(path()).open_version("main", options()), 0), 99u);
}

TEST_P(CloseRace, EachCallAtTheTimeOfClose) {
  for (const Call& call : calls()) {
    Store store = Store::open(path());
    Region region = store.open_region("main", options());
    word_at(region, 0) += 1;
    std::barrier start(2);
    bool closed = false;
    std::thread closer([&] {
      start.arrive_and_wait();
      closed = made(calls().back(), region);
    });
    start.arrive_and_wait();
    const bool done = made(call, region);
    closer.join();
    EXPECT_TRUE(closed || std::string(call.what) == "close") << call.what;
    EXPECT_TRUE(closed || done) << call.what;
    EXPECT_FALSE(region.valid());
    if (store.contains("s")) store.remove_snapshot("s");
  }
  EXPECT_TRUE(Store::open(path()).verify({.read_data = true}).damages.empty());
}

TEST_P(CloseRace, CallsAfterCloseAreRefused) {
  Store store = Store::open(path());
  Region region = store.open_region("main", options());
  Pin pin = region.pin({0, kPage});
  region.close();
  for (const Call& call : calls()) {
    const std::string what = call.what;
    if (what == "sizes" || what == "kind" || what == "range_of") continue;
    EXPECT_FALSE(made(call, region)) << what;
  }
  EXPECT_EQ(region.data(), nullptr);
  EXPECT_EQ(region.size_bytes() + region.capacity_bytes() + region.file_bytes(), 0u);
  EXPECT_ERRC((void)region.range_of(nullptr, 1), Errc::invalid_argument);
  pin.release();
  // The branch is free, although the handle still exists.
  EXPECT_NO_THROW((void)store.open_region("main", options()));
}

// Another thread of the parent holds the region's locks, as close() does, when the child is forked.
TEST_P(CloseRace, AChildOfForkWaitsForNoLockOfItsParent) {
  Store store = Store::open(path());
  Region region = store.open_region("main", options());
  Pin pin = region.pin({0, kPage});
  Transaction transaction = region.begin();
  auto& impl = region::RegionAccess::impl_of(region);
  std::unique_lock changing(impl.mutex);
  std::unique_lock closing(impl.inside);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const bool has_size = region.size_bytes() == kMiB;
    pin.release();
    transaction = Transaction();
    region = Region();
    ::_exit(has_size ? 0 : 1);
  }
  closing.unlock();
  changing.unlock();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(transaction.is_open());
  transaction.rollback();
  EXPECT_EQ(region.size_bytes(), kMiB);
}

VELLUM_BOTH_ENGINES(CloseRace);

// close_and_leave_memory() is a call of this engine only.
class CloseRaceMapped : public testing::Test {
 protected:
  static bool is_mapped(void* address) {
    unsigned char in_core = 0;
    return ::mincore(address, kPage, &in_core) == 0;
  }

  static RegionOptions mapped() {
    RegionOptions options;
    options.engine = Engine::mapped;
    return options;
  }

  const Call leave_{"leave", [](Region& r) { r.close_and_leave_memory(); }};
  TempDirectory directory_;
};

// A close() that has begun holds the lock. The call that waits for it must not have changed
// anything: the memory is then unmapped.
TEST_F(CloseRaceMapped, ACloseThatHasBegunUnmapsTheMemory) {
  Store store = Store::create(directory_ / "store");
  Region region = store.create_region("main", kMiB, mapped());
  void* const at = region.data();
  auto& impl = region::RegionAccess::impl_of(region);
  bool left = true;
  std::unique_lock closing(impl.mutex);
  CallingThread leaver([&] { left = made(leave_, region); });
  leaver.wait_until_asleep();
  EXPECT_FALSE(leaver.ended());
  impl.close();
  closing.unlock();
  leaver.join();
  EXPECT_FALSE(left);
  EXPECT_FALSE(is_mapped(at));
}

// A commit is in the middle of its write when the region is closed.
TEST_F(CloseRaceMapped, LeavingTheMemoryWaitsForACommitThatHasBegun) {
  HookFs fs(base::posix_fs());
  Store::create(directory_ / "store").create_region("main", kMiB, mapped()).close();
  Store store = StoreAccess::handle_of(store::StoreDirectory::open(fs, directory_ / "store"));
  Region region = store.open_region("main", mapped());
  auto* const at = static_cast<std::uint64_t*>(region.data());
  const std::size_t bytes = region.capacity_bytes();
  Gate gate;
  std::atomic<bool> armed{true};
  fs.hooks.before_write = [&](const std::string& file) {
    if (file.ends_with("/journal") && armed.exchange(false)) gate.pass();
  };
  *at = 99;
  bool committed = false, left = false;
  std::thread committer([&] { committed = made(calls().front(), region); });
  gate.wait_for_arrival();
  CallingThread leaver([&] { left = made(leave_, region); });
  leaver.wait_until_asleep();
  EXPECT_FALSE(leaver.ended());
  gate.open();
  committer.join();
  leaver.join();
  EXPECT_TRUE(committed && left);
  EXPECT_EQ(*at, 99u);
  ::munmap(at, bytes);
  EXPECT_EQ(word_at(Store::open(directory_ / "store").open_version("main"), 0), 99u);
}

TEST_F(CloseRaceMapped, LeavingTheMemoryAtTheTimeOfClose) {
  Store store = Store::create(directory_ / "store");
  (void)store.create_region("main", kMiB, mapped());
  for (int round = 0; round < 50; ++round) {
    Region region = store.open_region("main", mapped());
    void* const at = region.data();
    const std::size_t bytes = region.capacity_bytes();
    std::barrier start(2);
    bool closed = false;
    std::thread closer([&] {
      start.arrive_and_wait();
      closed = made(calls().back(), region);
    });
    start.arrive_and_wait();
    const bool left = made(leave_, region);
    closer.join();
    EXPECT_NE(closed, left);
    EXPECT_FALSE(region.valid());
    if (left) ::munmap(at, bytes);
  }
}

struct FileCall {
  const char* what;
  std::function<void(AtomicFile&)> call;
};

// The calls of an atomic file run one at a time, too.
TEST(CloseRaceOfAnAtomicFile, EachCallAtTheTimeOfClose) {
  const std::vector<FileCall> file_calls = {
      {"commit", [](AtomicFile& f) { f.commit(); }},
      {"resize", [](AtomicFile& f) { f.resize(2 * kMiB); }},
      {"checkpoint", [](AtomicFile& f) { f.checkpoint(); }},
      {"size_bytes", [](AtomicFile& f) { (void)f.size_bytes(); }},
      {"others",
       [](AtomicFile& f) {
         (void)(f.path().size() + f.capacity_bytes());
         (void)(f.data() == nullptr || f.medium() == Medium::disk || f.tracker() == Tracker::cards);
       }},
      {"close", [](AtomicFile& f) { f.close(); }},
  };
  TempDirectory directory;
  for (const FileCall& call : file_calls) {
    AtomicFileOptions pages;
    pages.tracker = Tracker::pages;
    AtomicFile file = AtomicFile::open_or_create(directory / call.what, kMiB, pages);
    *static_cast<std::uint64_t*>(file.data()) = 5;
    std::barrier start(2);
    std::thread closer([&] {
      start.arrive_and_wait();
      file.close();
    });
    start.arrive_and_wait();
    try {
      call.call(file);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::invalid_argument) << call.what << ": " << e.what();
    }
    closer.join();
    EXPECT_FALSE(file.valid());
    EXPECT_ERRC(file.commit(), Errc::invalid_argument);
    EXPECT_NO_THROW(file.close());
  }
}

}  // namespace
}  // namespace vellum::test
