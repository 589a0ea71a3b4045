// Processes that have versions open while another one pulls into their store, with the kernel's
// locks. They read nothing before gc has done all that it may.
#include <gtest/gtest.h>

#include "base/expect_error.hpp"
#include "remote/holds.hpp"
#include "remote/lazy_fixture.hpp"
#include "remote/session/missing_pieces.hpp"
#include "store/packs/former_file.hpp"
#include "support/child.hpp"

namespace vellum::remote::test {
namespace {

using vellum::test::Child;
using vellum::test::require;

// A process that has a version open. It compares all bytes when it is asked to, and then ends.
class ReaderProcess {
 public:
  ReaderProcess(const std::function<Store()>& open_store, const std::string& name,
                const std::vector<std::byte>& expected) {
    int asked[2], ready[2];
    require(::pipe(asked) == 0 && ::pipe(ready) == 0, "there are pipes");
    child_.emplace(vellum::test::start_child([&] {
      ::close(asked[1]);
      Store store = open_store();
      const Region region = store.open_version(name);
      require(::write(ready[1], "x", 1) == 1, "the parent can be told");
      char c = 0;
      require(::read(asked[0], &c, 1) == 1, "the parent asks");
      require(region.size_bytes() == expected.size(), "the size is the same");
      require(std::memcmp(region.data(), expected.data(), expected.size()) == 0, "bytes are equal");
    }));
    ::close(asked[0]);
    ::close(ready[1]);
    ask_ = asked[1];
    char c = 0;
    EXPECT_EQ(::read(ready[0], &c, 1), 1);
    ::close(ready[0]);
  }
  ~ReaderProcess() { ::close(ask_); }
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;

  std::string named() const { return "process " + std::to_string(child_->pid()); }
  void expect_whole_and_end() {
    EXPECT_EQ(::write(ask_, "x", 1), 1);
    EXPECT_CHILD_EXIT(child_->wait(), 0);
  }
  void kill() {
    child_->kill(SIGKILL);
    EXPECT_CHILD_SIGNAL(child_->wait(), SIGKILL);
  }

 private:
  std::optional<Child> child_;
  int ask_ = -1;
};

class ReaderProcesses : public LazyTest {
 protected:
  // All packs of a branch in one file.
  std::shared_ptr<StoreDirectory> make_origin() {
    format::Superblock options = remote_options();
    options.pack_bytes = 64u << 20;
    auto out = StoreDirectory::create(base::posix_fs(), dir.path("o"), options);
    add_remote_file(*out, "origin", url(), false);
    return out;
  }
  std::function<Store()> opening(const std::string& name) const {
    return [this, name] { return StoreAccess::handle_of(open_clone(name)); };
  }
  std::size_t former_files(StoreDirectory& of) const {
    return store::former_files(of.fs(), of.packs().places()).size();
  }
  void collect_twice(StoreDirectory& of) const {
    store::collect_garbage(of, false, nullptr);
    store::collect_garbage(of, false, nullptr, 9);
  }
  static std::string busy_text_of_gc(StoreDirectory& of) {
    store::GcPace impatient;
    impatient.patience = std::chrono::milliseconds(1);
    return store::test::error_text(
        Errc::busy, [&] { store::collect_garbage(of, false, nullptr, 0, impatient); });
  }
  PullReport fetch_packs(StoreDirectory& core) const {
    Session session(core, "origin", interfered());
    return pull(session, {{}, true}, nullptr);
  }
  void release(StoreDirectory& core) const {
    Session session(core, "origin", interfered());
    release_holds(session);
  }
  std::size_t holds() const {
    const auto there = objects();
    return read_holds(Remote(*there, store->superblock().store_id)).size();
  }
};

TEST_F(ReaderProcesses, KeepTheirVersionsBesideAPullAndGc) {
  const auto origin = make_origin();
  Line line(*origin, "main", 5);
  line.begin();
  line.step("s0");
  const auto s0 = line.bytes();
  push_names(*origin, {"s0"});
  const auto copy = clone_to("c");
  store::collect_garbage(*copy, false, nullptr, 9);
  line.step("s1", 40);
  push_names(*origin, {"s1"});

  ReaderProcess killed(opening("c"), "s0", s0), reader(opening("c"), "s0", s0);
  pull_names(*copy, {"s1"});
  EXPECT_EQ(former_files(*copy), 1u);
  copy->remove_snapshot("s0");
  collect_twice(*copy);
  killed.kill();
  collect_twice(*copy);
  EXPECT_EQ(former_files(*copy), 1u);
  store::test::expect_no_damage(*copy);
  reader.expect_whole_and_end();
  collect_twice(*copy);
  EXPECT_EQ(former_files(*copy), 0u);
  expect_contents(*copy, {{"s1", line.bytes()}});
}

// The newest run of "theirs" is remote, and older ones are in files of the lazy clone. gc cannot
// find such a version, so it names its reader.
TEST_F(ReaderProcesses, ReadAPartlyRemoteVersionOfALazyCloneBesideAPull) {
  make(2);
  push_all(*store);
  const auto core = clone_lazily("c");
  Line here(*core, "main", 9);
  here.go_on(line);
  here.step("gone");
  contents["gone"] = here.bytes();
  here.step("after", 200);
  contents["after"] = here.bytes();
  push_all(*core, interfered());
  const auto other = clone_to("o");
  Line there(*other, "main", 10);
  there.go_on(here);
  there.step("theirs");
  contents["theirs"] = contents["main"] = there.bytes();
  push_all(*other);
  core->remove_snapshot("gone");
  store::collect_garbage(*core, false, nullptr, 9);
  pull_names(*core, {"theirs", "main"}, interfered());

  ReaderProcess reader(opening("c"), "theirs", contents["theirs"]);
  pull_names(*core, {"gone"}, interfered());
  const std::string text = busy_text_of_gc(*core);
  EXPECT_NE(text.find(reader.named()), std::string::npos) << text;
  EXPECT_NE(text.find("wait until it ends"), std::string::npos) << text;
  fetch_packs(*core);
  expect_contents(*open_clone("c"), contents);
  reader.expect_whole_and_end();
  collect_twice(*open_clone("c"));
  expect_contents(*open_clone("c"), contents);
}

// The reader fetches pieces until it ends.
TEST_F(ReaderProcesses, ReadALazyCloneWhosePacksAreFetchedMeanwhile) {
  make(3);
  push_all(*store);
  const auto core = clone_lazily("c");
  ReaderProcess reader(opening("c"), "s1", contents["s1"]);
  fetch_packs(*core);
  EXPECT_FALSE(has_missing_pieces(base::posix_fs(), dir.path("c")));
  EXPECT_ERRC(release(*core), Errc::busy);
  EXPECT_EQ(holds(), 1u);
  const auto there = objects();
  const Remote remote(*there, store->superblock().store_id);
  forget_names(remote, {"s0", "s1", "s2", "main"});
  collect_remote(remote, false, nullptr);
  core->remove_snapshot("s1");
  contents.erase("s1");
  const std::string text = busy_text_of_gc(*core);
  EXPECT_NE(text.find(reader.named()), std::string::npos) << text;
  reader.expect_whole_and_end();
  release(*core);
  EXPECT_EQ(holds(), 0u);
  collect_twice(*core);
  expect_contents(*core, contents);
}

TEST_F(ReaderProcesses, AreNamedWhereACommandHasToWaitForAWriter) {
  make(1);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  Child writer = vellum::test::start_child([&] {
    const auto core = StoreDirectory::open(base::posix_fs(), dir.path("s"));
    const auto held = BranchWriter::open(*core, "main");
    require(::write(ready[1], "x", 1) == 1, "the parent can be told");
    for (;;) ::pause();
  });
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  const std::string named = "held by process " + std::to_string(writer.pid());
  Store handle = StoreAccess::handle_of(store);
  for (const auto& act : std::vector<std::function<void()>>{
           [&] { handle.remove_branch("main"); }, [&] { handle.rename_branch("main", "other"); },
           [&] { BranchWriter::open(*store, "main"); }}) {
    const std::string text = store::test::error_text(Errc::busy, act);
    EXPECT_NE(text.find(named), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace vellum::remote::test
