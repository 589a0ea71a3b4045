// The files in hints/: written without a sync, renamed into place, removed with their owner, and
// never an error.
#include "store/catalog/working_set_file.hpp"

#include <gtest/gtest.h>

#include "store/check/check.hpp"
#include "store/snapshots_fixture.hpp"

namespace vellum::store::test {
namespace {

class WorkingSetFiles : public SnapshotsTest {
 protected:
  void SetUp() override {
    auto writer = create(small_options(), 16, "store");
    Model model(16);
    model.store64(3, 0, 7);
    commit(*writer, model, true);
    name_head(*writer, model, "first");
    name_head(*writer, model, "second");
    writer.reset();
    fs.reset_counts();
  }
  static format::WorkingSet set_of(std::uint64_t n) { return {{n, n + 1, 5}, {{n, 2}, {9, 1}}}; }
  void write(const std::string& name, std::uint64_t n) {
    write_working_set(*store, name, set_of(n));
  }
  bool reads(const std::string& name, std::uint64_t n) {
    const auto ranges = read_working_set(*store, name, set_of(n).owner);
    if (!ranges.empty()) {
      EXPECT_EQ(ranges, set_of(n).ranges);
    }
    return !ranges.empty();
  }
  bool there(const std::string& name) { return fs.exists(working_set_path(store->path(), name)); }
  std::size_t hints() { return fs.list(store->path() + "/hints").size(); }
};

TEST_F(WorkingSetFiles, EachNameHasOneFile) {
  EXPECT_FALSE(reads("first", 1));
  write("first", 1);
  write("main", 2);
  EXPECT_TRUE(reads("first", 1));
  EXPECT_TRUE(reads("main", 2));
  EXPECT_FALSE(reads("first", 2)) << "another owner's";
  write("first", 3);
  EXPECT_TRUE(reads("first", 3));
  EXPECT_FALSE(reads("first", 1));
  EXPECT_EQ(hints(), 2U);
  write("nobody", 4);
  EXPECT_FALSE(there("nobody"));
  EXPECT_EQ(fs.seen(Call::sync) + fs.seen(Call::sync_dir), 0U);
}

TEST_F(WorkingSetFiles, TheOwnerIsTheVersionNotTheName) {
  const auto first = resolve_version(*store, "first"), main = resolve_version(*store, "main");
  EXPECT_EQ(working_set_owner(first).branch_id, working_set_owner(main).branch_id);
  EXPECT_FALSE(working_set_owner(first) == working_set_owner(main));
  EXPECT_EQ(working_set_owner(main), working_set_owner_of_branch(main.version.branch_id));
  auto later = first;
  ++later.version.sequence;
  EXPECT_FALSE(working_set_owner(first) == working_set_owner(later));
  store->create_branch("other", kPageBytes, 0);
  EXPECT_FALSE(working_set_owner(main) == working_set_owner(resolve_version(*store, "other")));
}

TEST_F(WorkingSetFiles, TheFileIsRemovedWithItsOwner) {
  for (const char* name : {"first", "second", "main"}) write(name, 1);
  remove("first");
  store->remove_branch("main");
  contents.erase("main");
  EXPECT_FALSE(there("first"));
  EXPECT_FALSE(there("main"));
  EXPECT_TRUE(there("second"));
  expect_all();
}

// A crash has interrupted a removal, and the directory has other files.
TEST_F(WorkingSetFiles, GcRemovesFilesWithoutAnOwner) {
  for (const char* name : {"first", "second", "main"}) write(name, 1);
  const std::string directory = store->path() + "/hints/";
  for (const char* file : {"gone.set", ".123.4.5", "first", ".set", "-.set", "x"}) {
    fs.open(directory + file, base::OpenMode::create_new);
  }
  collect_garbage(*store, true, nullptr);
  EXPECT_EQ(hints(), 9U) << "a dry run removes nothing";
  gc();
  EXPECT_EQ(hints(), 3U);
  for (const char* name : {"first", "second", "main"}) EXPECT_TRUE(reads(name, 1));
  fs.fail_nth(Call::unlink, 2, Errc::io);
  remove("first");
  EXPECT_TRUE(there("first"));
  gc();
  EXPECT_FALSE(there("first"));
  expect_all();
}

TEST_F(WorkingSetFiles, ACallThatFailsIsNoError) {
  for (const auto call : {Call::mkdir, Call::create, Call::write, Call::rename}) {
    for (const auto code : {Errc::no_space, Errc::read_only, Errc::io}) {
      fs.fail_nth(call, 1, code);
      write("first", 1);
      EXPECT_FALSE(reads("first", 1));
      fs.heal();
      if (call != Call::mkdir) {
        EXPECT_EQ(hints(), 0U) << "no leftover file";
      }
    }
    if (call == Call::mkdir) fs.make_directory(store->path() + "/hints");
  }
  write("first", 1);
  fs.fail_nth(Call::rename, 1, Errc::no_space);
  write("first", 2);
  EXPECT_TRUE(reads("first", 1)) << "the previous file";
  fs.fail_nth(Call::open, 1, Errc::io);
  EXPECT_FALSE(reads("first", 1));
  fs.heal();
  // gc continues.
  fs.open(store->path() + "/hints/gone.set", base::OpenMode::create_new);
  fs.fail_nth(Call::unlink, 1, Errc::io);
  gc();
  fs.heal();
  expect_all();
}

// A failed removal of the branch or snapshot itself is an error.
TEST_F(WorkingSetFiles, ARemovalFailsOnlyForItsOwnName) {
  write("first", 1);
  fs.fail_nth(Call::unlink, 1, Errc::io);
  EXPECT_THROW(store->remove_snapshot("first"), Error);
  EXPECT_TRUE(has_snapshot(*store, "first"));
  EXPECT_TRUE(there("first"));
  fs.fail_nth(Call::unlink, 2, Errc::io);
  remove("first");
  EXPECT_FALSE(has_snapshot(*store, "first"));
  EXPECT_TRUE(there("first"));
}

TEST_F(WorkingSetFiles, TheFilesCountAsTheStores) {
  const std::uint64_t before = stat_store(*store).stored_bytes;
  format::WorkingSet set = set_of(1);
  for (std::uint64_t i = 0; i < 10'000; ++i) set.ranges.push_back({i * 7919, 1});
  write_working_set(*store, "first", set);
  EXPECT_GE(stat_store(*store).stored_bytes, before + 20'000);
}

}  // namespace
}  // namespace vellum::store::test
