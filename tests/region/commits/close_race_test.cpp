// close() beside the calls of another thread: it waits for calls that have begun, and later ones
// are refused.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <barrier>
#include <fstream>
#include <functional>
#include <thread>
#include <vellum/atomic_file.hpp>

#include "region/api/store_impl.hpp"
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
      {"range_of",
       [](Region& r) {
         if (const void* at = r.data()) (void)r.range_of(at, kMiB);
       }},
      {"pin", [](Region& r) { (void)r.pin({0, kMiB}); }},
      {"prefetch", [](Region& r) { r.prefetch({0, kMiB}); }},
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

// A commit is in the middle of its write. Then close() comes.
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
  std::atomic<pid_t> closer_id{0};
  std::atomic<bool> closed{false};
  std::thread closer([&] {
    closer_id = static_cast<pid_t>(::syscall(SYS_gettid));
    region.close();
    closed = true;
  });
  while (closer_id == 0) std::this_thread::yield();
  wait_until_asleep(closer_id, closed);
  EXPECT_FALSE(closed);
  gate.open();
  committer.join();
  closer.join();
  EXPECT_TRUE(committed);
  EXPECT_FALSE(region.valid());
  EXPECT_EQ(word_at(Store::open(path()).open_version("main", options()), 0), 99u);
}

TEST_P(CloseRace, EachCallBesideClose) {
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

TEST_P(CloseRace, WhatComesAfterIsRefused) {
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
  // The branch is free, although the handle is still there.
  EXPECT_NO_THROW((void)store.open_region("main", options()));
}

VELLUM_BOTH_ENGINES(CloseRace);

// The one call that only this engine has.
TEST(CloseRaceMapped, LeavingTheMemoryBesideClose) {
  TempDirectory directory;
  Store store = Store::create(directory / "store");
  RegionOptions mapped;
  mapped.engine = Engine::mapped;
  (void)store.create_region("main", kMiB, mapped);
  for (int round = 0; round < 50; ++round) {
    Region region = store.open_region("main", mapped);
    void* const at = region.data();
    const std::size_t bytes = region.capacity_bytes();
    std::barrier start(2);
    bool closed = false;
    std::thread closer([&] {
      start.arrive_and_wait();
      closed = made(calls().back(), region);
    });
    start.arrive_and_wait();
    const bool left = made({"leave", [](Region& r) { r.close_and_leave_memory(); }}, region);
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

// An atomic file's calls take turns, too.
TEST(CloseRaceOfAnAtomicFile, EachCallBesideClose) {
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
