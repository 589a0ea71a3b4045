// Files and directories that get their name when they are complete.
#include "base/files/new_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "base/bytes.hpp"
#include "base/expect_error.hpp"
#include "base/temp_directory.hpp"
#include "support/disk/forwarding_fs.hpp"
#include "support/disk/memory_fs.hpp"

namespace vellum::base {
namespace {

class NewFileTest : public testing::Test {
 protected:
  NewFileTest() { fs_.make_directory("/d"); }
  std::size_t entries() const { return fs_.list("/d").size(); }
  std::unique_ptr<NewFile> make(const std::string& path) {
    auto made = std::make_unique<NewFile>(fs_, path);
    made->file().pwrite(test::to_bytes(path), 0);
    return made;
  }
  test::MemoryFs fs_;
};

TEST_F(NewFileTest, GetsItsNameWithAllOfItsBytes) {
  const auto made = make("/d/f");
  EXPECT_FALSE(fs_.exists("/d/f"));
  made->publish();
  EXPECT_EQ(test::to_bytes("/d/f"), fs_.read_file("/d/f"));
  EXPECT_EQ(1u, entries());
}

TEST_F(NewFileTest, PublishDoesNotReplaceAndReplaceDoes) {
  fs_.write_file("/d/f", test::to_bytes("old"));
  EXPECT_ERRC(make("/d/f")->publish(), Errc::already_exists);
  EXPECT_EQ(test::to_bytes("old"), fs_.read_file("/d/f"));
  EXPECT_EQ(1u, entries());
  make("/d/f")->replace();
  EXPECT_EQ(test::to_bytes("/d/f"), fs_.read_file("/d/f"));
  EXPECT_EQ(1u, entries());
}

TEST_F(NewFileTest, WhatIsGivenUpGoes) {
  make("/d/f").reset();
  EXPECT_EQ(0u, entries());
  {
    const NewDirectory made(fs_, "/d/new/");
    fs_.make_directory(made.unfinished_path());
    fs_.make_directory(made.unfinished_path() + "/inner");
    fs_.write_file(made.unfinished_path() + "/inner/f", {});
  }
  EXPECT_EQ(0u, entries());
}

TEST_F(NewFileTest, ADirectoryGetsItsNameWithAllThatIsInIt) {
  NewDirectory made(fs_, "/d/new/");
  fs_.make_directory(made.unfinished_path());
  fs_.write_file(made.unfinished_path() + "/f", test::to_bytes("f"));
  made.publish();
  EXPECT_EQ(test::to_bytes("f"), fs_.read_file("/d/new/f"));
}

// Unfinished files of a killed process: their locks ended with it.
TEST_F(NewFileTest, WhatNobodyHoldsIsSweptAndWhatSomebodyHoldsStays) {
  fs_.write_file("/d/.vellum-new.f.1.2.3", test::to_bytes("part"));
  fs_.write_file("/d/.vellum-new.g.1.2.4", {});
  fs_.make_directory("/d/.vellum-new.g.1.2.4.d");
  fs_.write_file("/d/.vellum-new.g.1.2.4.d/f", test::to_bytes("part"));
  fs_.write_file("/d/vellum-new.mine", {});
  const auto alive = make("/d/a");
  EXPECT_EQ(2u, entries());  // the user's own, and the current unfinished one
  const auto other = make("/d/b");
  EXPECT_TRUE(fs_.exists(alive->unfinished_path()));
  alive->publish();
  other->publish();
  EXPECT_EQ(3u, entries());
}

// A durable name must not have bytes that are not durable.
class WatchingFs final : public test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  std::unique_ptr<File> open(const std::string& path, OpenMode mode) override {
    return std::make_unique<WatchingFile>(*this, ForwardingFs::open(path, mode));
  }
  void rename(const std::string& from, const std::string& to) override {
    EXPECT_FALSE(unsynced_);
    ForwardingFs::rename(from, to);
    unsynced_name_ = true;
  }
  void rename_new(const std::string& from, const std::string& to) override {
    EXPECT_FALSE(unsynced_);
    ForwardingFs::rename_new(from, to);
    unsynced_name_ = true;
  }
  void sync_directory(const std::string& path) override {
    ForwardingFs::sync_directory(path);
    unsynced_name_ = false;
  }
  bool unsynced_name() const { return unsynced_name_; }

 private:
  class WatchingFile final : public test::ForwardingFile {
   public:
    WatchingFile(WatchingFs& fs, std::unique_ptr<File> below)
        : ForwardingFile(std::move(below)), fs_(fs) {}
    void pwrite(std::span<const std::byte> bytes, std::uint64_t at) override {
      fs_.unsynced_ = true;
      ForwardingFile::pwrite(bytes, at);
    }
    void sync_data() override {
      ForwardingFile::sync_data();
      fs_.unsynced_ = false;
    }

   private:
    WatchingFs& fs_;
  };
  bool unsynced_ = false, unsynced_name_ = false;
};

TEST_F(NewFileTest, IsDurableBeforeItsNameAndThenTheName) {
  WatchingFs fs(fs_);
  for (const bool replacing : {false, true}) {
    NewFile made(fs, "/d/f");
    made.file().pwrite(test::to_bytes("content"), 0);
    replacing ? made.replace() : made.publish();
    EXPECT_FALSE(fs.unsynced_name());
  }
  NewDirectory made(fs, "/d/new");
  fs.make_directory(made.unfinished_path());
  made.publish();
  EXPECT_FALSE(fs.unsynced_name());
}

TEST_F(NewFileTest, ALongNameAndABareOne) {
  const std::string name(255, 'n');
  make("/d/" + name)->publish();
  EXPECT_TRUE(fs_.exists("/d/" + name));
  EXPECT_EQ(".", parent_of("f"));
  EXPECT_EQ("/", parent_of("/f"));
  EXPECT_EQ("/d", parent_of("/d/f"));
}

// Some processes create files while others sweep the same directory. No sweep removes an unfinished
// file that is in use, not even between its creation and its lock.
TEST(NewFileBeside, OthersAtTheSameDirectory) {
  const test::TempDirectory directory(test::memory_directory());
  const std::string d = directory / "d";
  posix_fs().make_directory(d);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&d, t] {
      for (int i = 0; i < 60; ++i) {
        NewFile made(posix_fs(), d + "/" + std::to_string(t) + "-" + std::to_string(i));
        made.file().pwrite(test::to_bytes("x"), 0);
        made.publish();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(180u, posix_fs().list(d).size());
}

TEST(NewFileBeside, ALinkOfThatNameIsNotFollowed) {
  const test::TempDirectory directory;
  std::ofstream(directory / "precious") << "x";
  ASSERT_EQ(0,
            ::symlink((directory / "precious").c_str(), (directory / ".vellum-new.x.1").c_str()));
  NewFile(posix_fs(), directory / "f").publish();
  EXPECT_TRUE(posix_fs().exists(directory / "precious"));
}

}  // namespace
}  // namespace vellum::base
