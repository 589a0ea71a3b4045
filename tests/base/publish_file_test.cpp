#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.hpp"
#include "base/expect_error.hpp"
#include "base/files/file.hpp"
#include "base/temp_directory.hpp"
#include "support/disk/forwarding_fs.hpp"

namespace vellum::base {
namespace {

using test::Bytes;
using test::to_bytes;
using test::to_text;

// Forwards calls to the real file system, records their order, and fails the given one.
class RecordingFs final : public test::ForwardingFs {
 public:
  explicit RecordingFs(std::string failing = "")
      : ForwardingFs(posix_fs()), failing_(std::move(failing)) {}

  std::vector<std::string> calls;

  std::unique_ptr<File> open(const std::string& path, OpenMode mode) override {
    note("open");
    return std::make_unique<RecordingFile>(*this, ForwardingFs::open(path, mode));
  }
  void rename(const std::string& from, const std::string& to) override {
    note("rename");
    ForwardingFs::rename(from, to);
  }
  void rename_new(const std::string& from, const std::string& to) override {
    note("rename_new");
    ForwardingFs::rename_new(from, to);
  }
  void unlink(const std::string& path) override {
    note("unlink");
    ForwardingFs::unlink(path);
  }
  void sync_directory(const std::string& path) override {
    note("sync_directory");
    ForwardingFs::sync_directory(path);
  }

 private:
  class RecordingFile final : public test::ForwardingFile {
   public:
    RecordingFile(RecordingFs& fs, std::unique_ptr<File> file)
        : ForwardingFile(std::move(file)), fs_(fs) {}
    void pwrite(std::span<const std::byte> bytes, std::uint64_t offset) override {
      fs_.note("pwrite");
      ForwardingFile::pwrite(bytes, offset);
    }
    void sync_data() override {
      fs_.note("sync_data");
      ForwardingFile::sync_data();
    }

   private:
    RecordingFs& fs_;
  };

  void note(const std::string& call) {
    calls.push_back(call);
    if (call == failing_) throw Error(Errc::io, call + " fails");
  }

  std::string failing_;
};

class PublishFile : public testing::Test {
 protected:
  PublishFile() {
    posix_fs().make_directory(tmp);
    posix_fs().make_directory(target);
  }
  void publish(Fs& fs, const std::string& text, bool replace) {
    publish_file(fs, tmp, target, "name", to_bytes(text), replace);
  }
  std::string published() {
    return std::string(to_text(read_whole(posix_fs(), target + "/name", 1000)));
  }
  std::size_t tmp_files() { return posix_fs().list(tmp).size(); }

  test::TempDirectory directory;
  const std::string tmp = directory / "tmp";
  const std::string target = directory / "refs";
};

TEST_F(PublishFile, WritesSyncsRenamesSyncsTheDirectoryInThisOrder) {
  RecordingFs fs;
  publish(fs, "one", false);
  EXPECT_EQ(fs.calls, (std::vector<std::string>{"open", "pwrite", "sync_data", "rename_new",
                                                "sync_directory"}));
  EXPECT_EQ(published(), "one");
  EXPECT_EQ(tmp_files(), 0u);
}

TEST_F(PublishFile, ReplacesWhenAsked) {
  publish(posix_fs(), "one", true);
  publish(posix_fs(), "two", true);
  EXPECT_EQ(published(), "two");
  EXPECT_EQ(tmp_files(), 0u);
}

TEST_F(PublishFile, ATakenNameStays) {
  publish(posix_fs(), "one", false);
  EXPECT_ERRC(publish(posix_fs(), "two", false), Errc::already_exists);
  EXPECT_EQ(published(), "one");
  EXPECT_EQ(tmp_files(), 0u);
}

TEST_F(PublishFile, AFailureBeforeTheRenameLeavesTheOldFileAndNoTmpFile) {
  publish(posix_fs(), "old", true);
  for (const char* call : {"open", "pwrite", "sync_data", "rename"}) {
    RecordingFs fs(call);
    EXPECT_ERRC(publish(fs, "new", true), Errc::io);
    EXPECT_EQ(published(), "old") << call;
    EXPECT_EQ(tmp_files(), 0u) << call;
  }
}

TEST_F(PublishFile, AnUnsyncedDirectoryIsAnErrorEvenThoughTheNameIsThere) {
  RecordingFs fs("sync_directory");
  EXPECT_ERRC(publish(fs, "new", false), Errc::io);
  EXPECT_EQ(published(), "new");
}

TEST_F(PublishFile, OneOfManyCompetitorsWins) {
  std::atomic<int> winners{0};
  std::atomic<int> losers{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      try {
        publish(posix_fs(), "content", false);
        winners.fetch_add(1);
      } catch (const Error& error) {
        if (error.code() == Errc::already_exists) losers.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(losers, 7);
  EXPECT_EQ(tmp_files(), 0u);
}

TEST_F(PublishFile, ReadersSeeOneWholeVersion) {
  const std::string versions[] = {std::string(3000, 'a'), std::string(5000, 'b')};
  publish(posix_fs(), versions[0], true);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int round = 0; round < 100; ++round) publish(posix_fs(), versions[round % 2], true);
    stop = true;
  });
  int torn = 0;
  while (!stop) {
    const std::string seen(to_text(read_whole(posix_fs(), target + "/name", 10'000)));
    if (seen != versions[0] && seen != versions[1]) ++torn;
  }
  writer.join();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace vellum::base
