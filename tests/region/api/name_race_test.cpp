// Two makers want one name at once: one of them gets it, as a branch or as a snapshot, and never
// both do.
#include <functional>
#include <optional>
#include <thread>

#include "region/api/store_impl.hpp"
#include "store/catalog/store_directory.hpp"
#include "support/child.hpp"
#include "support/disk/hook_fs.hpp"
#include "support/gate.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr const char* kName = "x";

// Each way of making a name. `branch` is the maker's own.
struct Maker {
  const char* what;
  std::function<void(Store& store, const std::string& branch)> make;
};

std::size_t no_bytes(void* to, std::size_t capacity_bytes, std::size_t& left) {
  const std::size_t n = std::min(left, capacity_bytes);
  std::memset(to, 7, n);
  left -= n;
  return n;
}

void import_stream(Store& store) {
  std::size_t left = kPage;
  store.import_stream(
      kName, [&](void* to, std::size_t room) { return no_bytes(to, room, left); }, kPage, "");
}

// A creator that finds its new branch opened by another process removes it, unless it has a commit.
void commit_a_word(Region region) {
  word_at(region, 0) = 1;
  region.commit();
}

const std::vector<Maker>& makers() {
  static const std::vector<Maker> all = {
      {"create_region",
       [](Store& s, const std::string&) { commit_a_word(s.create_region(kName, kMiB)); }},
      {"open_or_create_region",
       [](Store& s, const std::string&) { commit_a_word(s.open_or_create_region(kName, kMiB)); }},
      {"create_branch", [](Store& s, const std::string&) { s.create_branch(kName, "base"); }},
      {"create_snapshot", [](Store& s, const std::string&) { s.create_snapshot(kName, "base"); }},
      {"create_snapshot of a head",
       [](Store& s, const std::string& branch) { s.create_snapshot(kName, branch); }},
      {"snapshot",
       [](Store& s, const std::string& branch) {
         Region region = s.open_region(branch);
         word_at(region, 0) += 1;
         region.snapshot(kName);
       }},
      {"snapshot_async",
       [](Store& s, const std::string& branch) {
         Region region = s.open_region(branch);
         word_at(region, 0) += 1;
         region.snapshot_async(kName).get();
       }},
      {"import_stream", [](Store& s, const std::string&) { import_stream(s); }},
      {"import_version",
       [](Store& s, const std::string&) { s.import_version(kName, s, "base", ""); }},
  };
  return all;
}

class NameRace : public testing::Test {
 protected:
  void SetUp() override {
    Store store = Store::create(path());
    for (const char* branch : {"a", "b"}) {
      Region region = store.create_region(branch, kMiB);
      word_at(region, 8) = 1;
      region.commit();
    }
    store.create_snapshot("base", "a");
  }
  std::string path() const { return directory_ / "store"; }
  static Store store_over(base::Fs& fs, const std::string& path) {
    return StoreAccess::handle_of(store::StoreDirectory::open(fs, path));
  }
  // Throws only the errors of a second creator.
  static bool made(const Maker& maker, base::Fs& fs, const std::string& path,
                   const std::string& branch) {
    try {
      Store store = store_over(fs, path);
      maker.make(store, branch);
      return true;
    } catch (const Error& e) {
      if (e.code() == Errc::already_exists || e.code() == Errc::busy) return false;
      throw;
    }
  }
  // Runs up to the first file that it makes in `tmp`, where it waits: between looking whether the
  // name is free and taking it.
  bool make_as_far_as_the_gate(const Maker& maker, Gate& gate) const {
    HookFs fs(base::posix_fs());
    fs.hooks.before_create = [&](const std::string& file) {
      if (file.starts_with(path() + "/tmp/")) gate.pass();
    };
    const bool ok = made(maker, fs, path(), "a");
    gate.arrive();  // if it was refused before
    return ok;
  }
  // Begins when the first one waits at the gate. Opens it when it finds the name locked, or when it
  // is through.
  bool make_meanwhile(const Maker& maker, Gate& gate) const {
    gate.wait_for_arrival();
    HookFs fs(base::posix_fs());
    bool opened = false;
    const auto open = [&](const std::string&) {
      if (!opened) gate.open();
      opened = true;
    };
    fs.hooks.byte_refused = open;
    const bool ok = made(maker, fs, path(), "b");
    open("");
    return ok;
  }
  void expect_one_name(const std::string& what, bool first, bool second) const {
    const auto core = store::StoreDirectory::open(base::posix_fs(), path());
    EXPECT_TRUE(first || second) << what;
    EXPECT_NE(has_branch(*core, kName), has_snapshot(*core, kName)) << what;
    EXPECT_TRUE(Store::open(path()).verify({.read_data = true}).damages.empty()) << what;
    has_branch(*core, kName) ? core->remove_branch(kName) : core->remove_snapshot(kName);
    EXPECT_FALSE(has_branch(*core, kName) || has_snapshot(*core, kName)) << what;
  }

  TempDirectory directory_;
};

TEST_F(NameRace, OneOfTwoThreadsGetsAName) {
  for (const Maker& a : makers()) {
    for (const Maker& b : makers()) {
      Gate gate;
      bool first = false;
      std::thread thread([&] { first = make_as_far_as_the_gate(a, gate); });
      const bool second = make_meanwhile(b, gate);
      thread.join();
      expect_one_name(std::string(a.what) + ", " + b.what, first, second);
      if (HasFailure()) return;
    }
  }
}

TEST_F(NameRace, OneOfTwoProcessesGetsAName) {
  for (const Maker& a : makers()) {
    for (const Maker& b : makers()) {
      Gate gate;
      Child child = start_child([&] {
        if (!make_as_far_as_the_gate(a, gate)) _exit(1);
      });
      const bool second = make_meanwhile(b, gate);
      const ChildEnd end = child.wait();
      ASSERT_TRUE(end.exited_with(0) || end.exited_with(1)) << testing::PrintToString(end);
      expect_one_name(std::string(a.what) + ", " + b.what, end.exited_with(0), second);
      if (HasFailure()) return;
    }
  }
}

// While a snapshot becomes a branch its name is taken, all the time.
TEST_F(NameRace, CreationDuringAConversionToABranch) {
  for (const Maker& b : makers()) {
    const std::string what = b.what;
    if (what == "open_or_create_region" || what.starts_with("import")) continue;  // may open it
    Store::open(path()).create_snapshot(kName, "base");
    Gate gate;
    const Maker convert_to_branch{"convert_to_branch",
                                  [](Store& s, const std::string&) { s.convert_to_branch(kName); }};
    bool first = false;
    std::thread thread([&] { first = make_as_far_as_the_gate(convert_to_branch, gate); });
    EXPECT_FALSE(make_meanwhile(b, gate)) << what;
    thread.join();
    EXPECT_TRUE(first) << what;
    EXPECT_TRUE(has_branch(*store::StoreDirectory::open(base::posix_fs(), path()), kName)) << what;
    expect_one_name(what, true, false);
  }
}

// Removing and making again run at once: neither meets the other half done.
TEST_F(NameRace, CreationDuringARemoval) {
  for (const Maker& b : makers()) {
    Store::open(path()).create_branch(kName, "base");
    Gate gate;
    std::thread thread([&] {
      HookFs fs(base::posix_fs());
      // The journal is removed, and its directory is removed next.
      fs.hooks.before_unlink = [&](const std::string& file) {
        if (!file.ends_with("/journal")) gate.pass();
      };
      store_over(fs, path()).remove_branch(kName);
      gate.arrive();
    });
    const bool made = make_meanwhile(b, gate);
    thread.join();
    const auto core = store::StoreDirectory::open(base::posix_fs(), path());
    EXPECT_EQ(made, has_branch(*core, kName) || has_snapshot(*core, kName)) << b.what;
    if (made) expect_one_name(b.what, made, false);
  }
}

TEST_F(NameRace, ARefusedSnapshotHasCommittedNothing) {
  Store store = Store::open(path());
  Region region = store.open_region("a");
  const std::uint64_t before = region.sequence();
  word_at(region, 0) = 5;
  // Another maker wants the same name, and gets it.
  Gate gate;
  bool other = false;
  std::thread thread([&] {
    HookFs fs(base::posix_fs());
    fs.hooks.before_create = [&](const std::string& file) {
      if (file.starts_with(path() + "/tmp/")) gate.pass();
    };
    other = made(makers()[3], fs, path(), "b");
  });
  gate.wait_for_arrival();
  std::thread open([&] { gate.open(); });
  EXPECT_ERRC(region.snapshot(kName), Errc::already_exists);
  open.join();
  thread.join();
  EXPECT_TRUE(other);
  EXPECT_EQ(region.sequence(), before);
  EXPECT_EQ(store.version("a").sequence, before);
  EXPECT_EQ(region.commit().sequence, before + 1);
}

// A snapshot that failed in the background releases its name, whatever its caller keeps.
TEST_F(NameRace, AFutureThatIsKeptHoldsNoName) {
  Store store = Store::open(path());
  Region region = store.open_region("a");
  word_at(region, 0) = 5;
  auto future = region.snapshot_async("y");
  future.wait();
  store.remove_snapshot("y");
  future.get();
}

// A creator that fails removes only its own files.
TEST_F(NameRace, AFailedCreatorKeepsCommitsOfOthers) {
  HookFs fs(base::posix_fs());
  bool once = false;
  fs.hooks.after_open = [&](const std::string& file) {
    if (!file.ends_with("/branches/x/journal") || once) return;
    once = true;  // create_region() has created the branch, and is about to open it
    Region other = Store::open(path()).open_region(kName);
    word_at(other, 0) = 77;
    other.commit();
    other.close();
    throw Error(Errc::io, "cannot be opened now");
  };
  EXPECT_ERRC(store_over(fs, path()).create_region(kName, kMiB), Errc::io);
  EXPECT_TRUE(once);
  EXPECT_EQ(word_at(Store::open(path()).open_version(kName), 0), 77u);
}

}  // namespace
}  // namespace vellum::test
