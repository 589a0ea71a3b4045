// vellum backup and vellum restore of other files than LMDB's.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/files/inode_lock.hpp"
#include "run/run_lib.hpp"
#include "support/descriptor.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class Backup : public CliTest {
 protected:
  std::string store() const { return path("store"); }
  std::string data() const { return path("data"); }
  Arguments backup(const std::string& name, const Arguments& options = {}) const {
    Arguments out = {"backup", store(), data(), "--name", name};
    out.insert(out.end(), options.begin(), options.end());
    return out;
  }
  std::string content_of(const std::string& version) const {
    const std::string exported = path("exported");
    fs::remove(exported);
    must({"export", store(), version, exported});
    return read_file(exported);
  }
  std::string snapshots() const { return must({"snapshot", store(), "--names"}).out; }
  // The test's directory has only these files: no temporary file is left.
  void expect_entries(std::size_t count) const {
    EXPECT_EQ(count, static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_),
                                                            fs::directory_iterator())));
  }
};

using test::Descriptor;

TEST_F(Backup, BackupStoresChangesAndRestoreReplacesTheFile) {
  const std::string first = noise(200, 1) + "an odd end";
  std::string second = first;
  second[100 * 4096] = static_cast<char>(~second[100 * 4096]);
  write_file(data(), first);
  const auto all = must(backup("one", {"--json", "-m", "why"})).json();
  EXPECT_EQ("one", all.at("snapshot"));
  EXPECT_EQ("main", all.at("branch"));
  EXPECT_EQ(201, all.at("pages_changed"));
  write_file(data(), second);
  const auto little = must(backup("two", {"--json"})).json();
  EXPECT_EQ(1, little.at("pages_changed"));
  EXPECT_LT(little.at("bytes_written"), 16384);
  EXPECT_TRUE(content_of("one") == first);
  EXPECT_TRUE(content_of("two") == second);
  EXPECT_EQ("why", must({"show", store(), "one", "--json"}).json().at("message"));
  fs::remove(path("exported"));

  chmod(data().c_str(), 0640);
  const auto restored = must({"restore", store(), "one", data(), "--json"}).json();
  EXPECT_EQ(first.size(), restored.at("size_bytes"));
  EXPECT_TRUE(read_file(data()) == first);
  EXPECT_EQ(fs::perms{0640}, fs::status(data()).permissions());
  fs::remove(data());
  must({"restore", store(), "two", data()});
  EXPECT_TRUE(read_file(data()) == second);
  fs::create_symlink("data", path("link"));
  must({"restore", store(), "one", path("link")});
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_TRUE(read_file(data()) == first);
  expect_entries(3);
}

// The next command removes its temporary directory.
TEST_F(Backup, AKilledRestoreLeavesTheOldFileOrTheNew) {
  const std::string first = noise(2000, 1), second = noise(2000, 2);
  write_file(data(), first);
  must(backup("one"));
  write_file(data(), second);
  for (int i = 0; i < 5; ++i) {
    const pid_t restoring = fork();
    if (restoring == 0) become_vellum({"-q", "restore", store(), "one", data()});
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * i));
    kill(restoring, SIGKILL);
    waitpid(restoring, nullptr, 0);
    const std::string found = read_file(data());
    EXPECT_TRUE(found == first || found == second);
  }
  must({"restore", store(), "one", data()});
  EXPECT_TRUE(read_file(data()) == first);
  expect_entries(2);
}

TEST_F(Backup, BackupUsesTheNamedBranch) {
  write_file(data(), "first");
  must(backup("one", {"--branch", "other"}));
  write_file(data(), "");
  const Result empty = must(backup("two", {"--branch", "other"}));
  EXPECT_NE(std::string::npos, empty.out.find("branch 'other' is at commit")) << empty.out;
  EXPECT_EQ("other\n", must({"branch", store(), "--names"}).out);
  EXPECT_EQ("", content_of("two"));
  EXPECT_EQ("first", content_of("one"));
  write_file(data(), noise(3, 1));
  const Result shown = run_on_terminal(backup("three"));
  EXPECT_NE(std::string::npos, shown.err.find("backup: 12.0 KiB of 12.0 KiB")) << shown.err;
}

TEST_F(Backup, AnOpenFileIsRefused) {
  write_file(data(), "first");
  must(backup("one"));
  write_file(data(), "second");
  {
    const Descriptor reader(data(), O_RDONLY);
    must(backup("two"));
    if (fcntl(reader.fd(), F_SETLEASE, F_RDLCK) != 0) GTEST_SKIP() << "no leases here";
    fcntl(reader.fd(), F_SETLEASE, F_UNLCK);
    expect_failure({"restore", store(), "one", data()}, 7, "busy", data());
    EXPECT_EQ("second", read_file(data()));
    must({"restore", store(), "one", data(), "--force"});
    EXPECT_EQ("first", read_file(data()));
    char old[6];
    EXPECT_EQ(6, read(reader.fd(), old, 6));
    EXPECT_EQ("second", std::string(old, 6));
  }
  const Descriptor writer(data(), O_RDWR);
  expect_failure(backup("three"), 7, "busy", "--stopped");
  must(backup("three", {"--stopped"}));
  EXPECT_EQ("three\ntwo\none\n", snapshots());
}

TEST_F(Backup, WhatIsRefusedLeavesNoNewStore) {
  write_file(data(), "content");
  write_file(path("other"), "content");
  expect_failure({"backup", store(), path("missing"), "--name", "a"}, 3, "not_found", "missing");
  expect_failure({"backup", store(), data(), "--name", "a b"}, 2, "invalid_argument", "a b");
  expect_failure({"import", store(), "main", path("missing")}, 3, "not_found", "missing");
  expect_failure({"import", store(), "a b", data()}, 2, "invalid_argument", "a b");
  expect_failure({"import", store(), "main", data(), "--snapshot", "main"}, 2, "invalid_argument",
                 "main");
  EXPECT_FALSE(fs::exists(store()));
  const Descriptor writer(data(), O_RDWR);
  expect_failure(backup("a"), 7, "busy", "--stopped");
  expect_failure({"backup", store(), data(), path("other"), "--name", "a"}, 7, "busy", "--stopped");
  EXPECT_FALSE(fs::exists(store()));
}

TEST_F(Backup, AFileOfAProgramUnderVellumRunIsRefused) {
  write_file(data(), "first");
  must(backup("one"));
  const auto file = base::posix_fs().open(data(), base::OpenMode::read_only);
  const auto lock = base::InodeLock::try_take(*file, base::InodeLock::Mode::exclusive);
  ASSERT_NE(nullptr, lock);
  expect_failure(backup("two"), 7, "busy", data());
  expect_failure(backup("two", {"--stopped"}), 7, "busy", data());
  expect_failure({"restore", store(), "one", data(), "--force"}, 7, "busy", data());
}

// Vellum neither takes a program's lock nor is blocked by it.
TEST_F(Backup, AProgramsOwnLockIsIgnored) {
  write_file(data(), "first");
  const Descriptor holder(data(), O_RDONLY);
  ASSERT_EQ(0, flock(holder.fd(), LOCK_EX));
  must(backup("one"));
}

TEST_F(Backup, AFileWithAJournalIsRefused) {
  write_file(data(), "first");
  must(backup("one"));
  write_file(data() + ".vellum-journal", "");
  expect_failure(backup("two"), 7, "busy", "vellum recover");
  expect_failure({"restore", store(), "one", data()}, 7, "busy", "vellum recover");
  EXPECT_EQ("one\n", snapshots());
}

TEST_F(Backup, AConcurrentChangeIsDetected) {
  write_file(data(), "");
  fs::resize_file(data(), 32 << 20);
  std::atomic<bool> ended = false;
  std::thread writer([&] {
    const Descriptor file(data(), O_RDWR);
    for (char byte = 0; !ended; ++byte) EXPECT_EQ(1, pwrite(file.fd(), &byte, 1, 12345));
  });
  // On a busy machine the change may happen too late.
  Result result;
  for (int i = 0; i < 100 && result.status != 7; ++i)
    result = run(backup("try" + std::to_string(i), {"--branch", std::to_string(i), "--stopped"}));
  ended = true;
  writer.join();
  EXPECT_EQ(7, result.status);
  EXPECT_NE(std::string::npos, result.err.find(data() + ": a program has changed it meanwhile"))
      << result.err;
  const std::string kept = snapshots();
  const auto count = std::count(kept.begin(), kept.end(), '\n');
  const std::string branches = must({"branch", store(), "--names"}).out;
  EXPECT_EQ(count, std::count(branches.begin(), branches.end(), '\n')) << "of the failure: none";
  must(backup("then"));
}

TEST_F(Backup, BadInputIsReportedAndNothingIsLost) {
  expect_failure({"backup", store(), path("gone"), "--name", "one"}, 3, "not_found", path("gone"));
  expect_failure({"backup", store(), path(""), "--name", "one"}, 2, "invalid_argument",
                 "not a regular file");
  EXPECT_FALSE(fs::exists(store())) << "made for nothing";
  write_file(data(), "first");
  must(backup("one"));
  write_file(data(), "second");
  expect_failure(backup("one"), 4, "already_exists", "one");
  expect_failure(backup("main"), 2, "invalid_argument", "both called 'main'");
  expect_failure(backup("one/two"), 2, "invalid_argument", "one/two");
  expect_failure(backup("two", {"--branch", "one"}), 4, "already_exists", "one");
  expect_failure({"backup", data(), data(), "--name", "one"}, 10, "io", data());
  EXPECT_EQ(2, run({"backup", store(), data()}).status);
  EXPECT_EQ("one\n", snapshots());
  EXPECT_EQ("first", content_of("main"));

  expect_failure({"restore", store(), "two", data()}, 3, "not_found", "two");
  expect_failure({"restore", store(), "one", path("")}, 2, "invalid_argument",
                 "not a regular file");
  expect_failure({"restore", store(), "one", path("no/data")}, 3, "not_found", path("no/data"));
  EXPECT_EQ("second", read_file(data()));
}

// liblmdb would divide by this.
TEST_F(Backup, AFileThatOnlyBeginsLikeLmdbIsCorrupted) {
  std::string bytes(3 * 4096, '\0');
  bytes.replace(16, 4, "\xde\xc0\xef\xbe");
  write_file(data(), bytes);
  expect_failure(backup("one"), 11, "corrupted", data());
  bytes.replace(40, 4, std::string("\x00\x10\x00\x00", 4));
  write_file(data(), bytes);
  expect_failure(backup("one"), 11, "corrupted", data());
  must(backup("one", {"--stopped"}));
  EXPECT_TRUE(content_of("one") == bytes);
}

// SQLite's write-ahead log and rollback journal, and DuckDB's log: by their first bytes.
const std::string kWal = std::string("\x37\x7f\x06\x82", 4) + std::string(60, 'w');
const std::string kJournal =
    std::string("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8) + std::string(60, 'j');

TEST_F(Backup, ADatabaseWithALogIsRefused) {
  write_file(data(), noise(4, 1));
  must({"init", store()});
  for (const auto& [end, content] :
       {std::pair<std::string, std::string>{"-wal", kWal}, {"-journal", kJournal}}) {
    write_file(data() + end, content);
    for (const Arguments& arguments :
         {backup("one"), Arguments{"import", store(), "main", data(), "--snapshot", "one"},
          Arguments{"attach", store(), "main", data(), "--snapshot", "one"}}) {
      const Result refused = run(arguments);
      EXPECT_EQ(refused.status, 7) << arguments[0] << ": " << refused.err;
      EXPECT_NE(refused.err.find("PRAGMA"), std::string::npos) << refused.err;
    }
    EXPECT_EQ(must({"log", store(), "--names"}).out, "");
    // Their remains after a clean end have no content.
    write_file(data() + end, end == "-wal" ? "" : std::string(512, '\0'));
  }
  must(backup("one"));
  std::string duck = noise(4, 2);
  duck.replace(8, 4, "DUCK");
  write_file(data(), duck);
  write_file(data() + ".wal", "log");
  EXPECT_EQ(run(backup("two")).status, 7);
  fs::remove(data() + ".wal");
  must(backup("two"));
}

TEST_F(Backup, RestoreLeavesNoLogOfTheOldContent) {
  write_file(data(), noise(4, 1));
  must(backup("one"));
  write_file(data(), noise(4, 2));
  write_file(data() + "-wal", kWal);
  write_file(data() + "-shm", "index");
  const Result refused = run({"restore", store(), "one", data()});
  EXPECT_EQ(refused.status, 7);
  EXPECT_NE(refused.err.find("--force"), std::string::npos) << refused.err;
  EXPECT_EQ(read_file(data()), noise(4, 2));
  const auto forced = must({"restore", store(), "one", data(), "--force", "--json"}).json();
  EXPECT_EQ(forced.at("removed").size(), 2u);
  EXPECT_EQ(read_file(data()), noise(4, 1));
  EXPECT_FALSE(fs::exists(data() + "-wal") || fs::exists(data() + "-shm"));
  // Nor does an export create a file next to one.
  write_file(path("new-wal"), kWal);
  EXPECT_EQ(run({"export", store(), "one", path("new")}).status, 7);
}

TEST_F(Backup, AFileWithoutASizeHasItsContent) {
  must({"backup", store(), "/proc/self/status", "--name", "one"});
  EXPECT_NE(must({"cat", store(), "one"}).out.find("VmPeak"), std::string::npos);
  must({"import", path("other"), "main", "/proc/cpuinfo", "--snapshot", "one"});
  EXPECT_FALSE(must({"cat", path("other"), "one"}).out.empty());
}

TEST_F(Backup, NamesMayHaveTheMaximumLength) {
  for (const std::size_t length : {std::size_t{230}, std::size_t{250}, std::size_t{255}}) {
    const std::string file = path(std::string(length, 'n'));
    const std::string name = "v" + std::to_string(length);
    write_file(file, "one");
    must({"backup", store(), file, "--branch", "b" + name, "--name", name});
    write_file(file, "two");
    must({"restore", store(), name, file});
    EXPECT_EQ(read_file(file), "one");
    fs::remove(file);
    must({"export", store(), name, file});
    EXPECT_EQ(read_file(file), "one");
    must({"import", store(), "i" + name, file});
  }
}

// A version of posix_acl_xattr.h: version 2, then tag, permissions and id of each entry.
std::string access_list() {
  std::string out("\2\0\0\0", 4);
  const auto add = [&](std::uint16_t tag, std::uint16_t permissions, std::uint32_t id) {
    out.append(reinterpret_cast<const char*>(&tag), 2);
    out.append(reinterpret_cast<const char*>(&permissions), 2);
    out.append(reinterpret_cast<const char*>(&id), 4);
  };
  add(1, 6, UINT32_MAX);
  add(2, 6, 65534);
  add(4, 0, UINT32_MAX);
  add(0x10, 6, UINT32_MAX);
  add(0x20, 0, UINT32_MAX);
  return out;
}

TEST_F(Backup, RestoreKeepsTheAccessListAndTheAttributes) {
  write_file(data(), "one");
  must(backup("one"));
  const std::string list = access_list();
  if (::setxattr(data().c_str(), "system.posix_acl_access", list.data(), list.size(), 0) != 0 ||
      ::setxattr(data().c_str(), "user.note", "mine", 4, 0) != 0) {
    GTEST_SKIP() << "the file system has no access lists or attributes";
  }
  must({"restore", store(), "one", data()});
  char found[256];
  ASSERT_EQ(::getxattr(data().c_str(), "system.posix_acl_access", found, sizeof found),
            static_cast<ssize_t>(list.size()));
  EXPECT_EQ(std::string(found, list.size()), list);
  ASSERT_EQ(::getxattr(data().c_str(), "user.note", found, sizeof found), 4);
  EXPECT_EQ(std::string(found, 4), "mine");
}

}  // namespace
}  // namespace vellum::cli_test
