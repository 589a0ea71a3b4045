// Locks end with their holder, even if it has children; no process waits without end; and a reader
// without write permission blocks no other reader.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include <filesystem>
#include <mutex>
#include <thread>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/snapshots_fixture.hpp"
#include "support/child.hpp"
#include "support/disk/hook_fs.hpp"
#include "support/gate.hpp"

namespace vellum::store::test {
namespace {

namespace stdfs = std::filesystem;
using vellum::test::Child;
using vellum::test::Gate;
using vellum::test::HookFs;
using vellum::test::start_child;

class Locks : public SnapshotsTest {
 protected:
  void make(const std::string& name = "store") {
    const auto writer = create(small_options(), 32, name);
    Model model(32);
    std::mt19937_64 random(1);
    model.fill(3, random);
    commit(*writer, model, true);
    name_head(*writer, model, "s1");
  }
  std::string path() const { return store->path(); }
};

struct Holder {
  const char* what;
  std::function<std::shared_ptr<const void>(StoreDirectory&)> hold;
  std::function<void(StoreDirectory&)> need;  // throws while another holder has the lock
};

const std::vector<Holder>& holders() {
  static const std::vector<Holder> all = {
      {"a branch", [](StoreDirectory& s) { return std::shared_ptr(BranchWriter::open(s, "main")); },
       [](StoreDirectory& s) { BranchWriter::open(s, "main"); }},
      {"gc", [](StoreDirectory& s) { return std::make_shared<GcExclusive>(s); },
       [](StoreDirectory& s) { GcExclusive{s}; }},
      {"no gc",
       [](StoreDirectory& s) { return std::make_shared<GcShared>(GcShared::try_lock(s).value()); },
       [](StoreDirectory& s) { GcExclusive{s}; }},
      {"names", [](StoreDirectory& s) { return std::make_shared<NamesShared>(s); },
       [](StoreDirectory& s) { NamesExclusive{s}; }},
      {"names alone", [](StoreDirectory& s) { return std::make_shared<NamesExclusive>(s); },
       [](StoreDirectory& s) { NamesExclusive{s}; }},
      {"a name", [](StoreDirectory& s) { return std::make_shared<NameLock>(lock_name(s, "x")); },
       [](StoreDirectory& s) {
         if (!try_lock_name(s, "x")) throw Error(Errc::busy, "the name is locked");
       }},
      {"a version that is open",
       [](StoreDirectory& s) { return std::make_shared<KeptVersion>(resolve_kept(s, "s1")); },
       [](StoreDirectory& s) {
         if (!pinned_roots(s, s.packs().list()).empty()) throw Error(Errc::busy, "it is pinned");
       }},
  };
  return all;
}

// A process with a child is killed: its locks are free, although the child is alive.
TEST_F(Locks, LocksOfAKilledProcessAreFreeWhileItsChildLives) {
  for (const Holder& holder : holders()) {
    SCOPED_TRACE(holder.what);
    make(std::string("store ") + holder.what);
    Gate forked, child_ends;
    Child child = start_child([&] {
      const auto core = StoreDirectory::open(base::posix_fs(), path());
      const auto held = holder.hold(*core);
      vellum::test::require(held != nullptr, "it is held");
      if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, 0);
        forked.arrive();
        child_ends.pass();
        _exit(0);
      }
      for (;;) pause();
    });
    forked.wait_for_arrival();
    const auto core = StoreDirectory::open(base::posix_fs(), path());
    child.kill(SIGKILL);
    EXPECT_CHILD_SIGNAL(child.wait(), SIGKILL);
    EXPECT_NO_THROW(holder.need(*core));
    child_ends.open();
  }
}

// The child of a living process does not release the process's locks.
TEST_F(Locks, LocksOfALivingProcessStayWhenItsChildEnds) {
  make();
  const auto writer = BranchWriter::open(*store, "main");
  EXPECT_CHILD_EXIT(vellum::test::run_child([] {}), 0);
  error_text(Errc::busy, [&] { BranchWriter::open(*StoreDirectory::open(fs, path()), "main"); });
  Model model(32);
  model.bytes = contents.at("main");
  model.store64(1, 0, 7);
  commit(*writer, model, false);
  contents["main"] = model.bytes;
  expect_all();
}

// A process that may only read a file can still lock it, by flock(2).
TEST_F(Locks, ALockOfAReadOnlySuperblockBlocksNoOtherReader) {
  make();
  const int fd = ::open((path() + "/vellum.store").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_NO_THROW(NamesShared{*store});
  EXPECT_NO_THROW(store->create_branch("b", kPageBytes, 0));
  struct flock lock{};
  lock.l_type = F_WRLCK;
  EXPECT_EQ(::fcntl(fd, F_OFD_SETLK, &lock), -1) << "a read-only descriptor has an exclusive lock";
  ::close(fd);
}

// gc waits for a process that holds the lock of names. Later processes wait for gc, so any number
// of them does not starve it.
TEST_F(Locks, AWaitingGcPrecedesNewReaders) {
  make();
  std::optional<NamesShared> first(*store);
  Gate announced;
  std::mutex mutex;
  std::string order;
  const auto note = [&](const char* who) {
    const std::lock_guard guard(mutex);
    return order += who;
  };
  HookFs hooked(base::posix_fs());
  bool told = false;
  hooked.hooks.byte_locked = [&](const std::string&) {
    if (!told) announced.arrive();
    told = true;
  };
  const auto collector = StoreDirectory::open(hooked, path());
  std::thread gc([&] {
    const NamesExclusive alone(*collector, std::chrono::minutes(5));
    note("gc ");
  });
  announced.wait_for_arrival();
  Gate refused;
  // gc counts as waiting once it has tried to lock and was refused.
  class AskingFs : public HookFs {
   public:
    AskingFs(base::Fs& below, Gate& gate) : HookFs(below), gate_(gate) {}
    std::unique_ptr<base::File> open(const std::string& p, base::OpenMode mode) override {
      return std::make_unique<Asking>(gate_, HookFs::open(p, mode));
    }

   private:
    class Asking : public vellum::test::ForwardingFile {
     public:
      Asking(Gate& gate, std::unique_ptr<base::File> below)
          : ForwardingFile(std::move(below)), gate_(gate) {}
      bool byte_locked(std::uint64_t at) const override {
        const bool is = ForwardingFile::byte_locked(at);
        if (is && !told_) gate_.arrive();
        told_ = told_ || is;
        return is;
      }

     private:
      Gate& gate_;
      mutable bool told_ = false;
    };
    Gate& gate_;
  };
  AskingFs asking(base::posix_fs(), refused);
  const auto reader = StoreDirectory::open(asking, path());
  std::thread second([&] {
    const NamesShared names(*reader);
    note("reader ");
    refused.arrive();  // in case it was never refused
  });
  refused.wait_for_arrival();
  EXPECT_EQ(note(""), "");
  first.reset();
  gc.join();
  second.join();
  EXPECT_EQ(order, "gc reader ");
}

// The directory is moved, and a copy of it, or nothing, replaces it.
class Exchanged : public Locks, public testing::WithParamInterface<bool> {};

TEST_P(Exchanged, AReplacedStoreIsDetected) {
  make();
  const std::string here = path(), moved = dir.path("moved");
  const auto open = StoreDirectory::open(base::posix_fs(), here);
  auto writer = BranchWriter::open(*open, "main");
  Model model(32);
  model.bytes = contents.at("main");
  model.store64(1, 0, 7);
  commit(*writer, model, false);
  const format::SnapshotRef ref = read_snapshot(*open, "s1");
  const std::string copy = dir.path("copy");
  copy_directory(here, copy);
  const auto exchange = [&] {
    stdfs::rename(here, moved);
    if (GetParam()) stdfs::rename(copy, here);
  };
  const auto put_back = [&] {
    if (GetParam()) stdfs::rename(here, copy);
    stdfs::rename(moved, here);
  };
  const std::vector<std::function<void()>> calls = {
      [&] {
        Model m = model;
        m.store64(2, 0, 8);
        commit(*writer, m, false);
      },
      [&] {
        Model m = model;
        m.store64(2, 0, 8);
        commit(*writer, m, true);
      },
      [&] { writer->publish_snapshot("t", ""); },
      [&] { writer->open_head(); },
      [&] { open->create_branch("b", kPageBytes, 0); },
      [&] { open->create_snapshot("t", ref); },
      [&] { open->convert_to_branch("s1"); },
      [&] { open->remove_snapshot("s1"); },
      [&] { resolve_kept(*open, "s1"); },
      [&] { NamesExclusive{*open}; },
  };
  exchange();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(i);
    try {
      calls[i]();
      ADD_FAILURE() << "no call has detected it";
    } catch (const Error& e) {
      EXPECT_TRUE(contains(e.what(), here)) << e.what();
      EXPECT_TRUE(e.code() == Errc::io || (!GetParam() && e.code() == Errc::not_found)) << e.what();
    }
  }
  if (GetParam()) {
    EXPECT_EQ(snapshot_names(*StoreDirectory::open(fs, here)), std::vector<std::string>{"s1"});
    EXPECT_EQ(StoreDirectory::open(fs, here)->branch_names(), std::vector<std::string>{"main"});
  }
  put_back();
  commit(*writer, model, true);
  contents["main"] = model.bytes;
  writer.reset();
  expect_all();
}

INSTANTIATE_TEST_SUITE_P(, Exchanged, testing::Bool(), [](const auto& info) {
  return info.param ? std::string("ForACopy") : std::string("ForNothing");
});

}  // namespace
}  // namespace vellum::store::test
