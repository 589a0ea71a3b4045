// vellum mount: versions are files for every program.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <vellum/datastore.hpp>
#include <vellum/store.hpp>

#include "mount/mount_lib.hpp"
#include "support/child.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class MountNoSanitizer : public MountTest {};

using Names = std::vector<std::string>;

TEST_F(MountNoSanitizer, EachVersionIsAFileOfItsSizeAndTime) {
  const std::string a = noise(5, 1) + "tail", b = noise(9, 2);
  const std::string s = make_store_with({a, b});
  serve(s);
  EXPECT_EQ((Names{"at", "main", "v1", "v2"}), names_in(path("m")));
  EXPECT_EQ(a, read_file(at("v1")));
  EXPECT_EQ(b, read_file(at("v2")));
  EXPECT_EQ(b, read_file(at("main")));
  EXPECT_EQ((Names{"main"}), names_in(at("at")));
  struct stat status{};
  ASSERT_EQ(0, stat(at("v1").c_str(), &status));
  EXPECT_EQ(static_cast<off_t>(a.size()), status.st_size);
  EXPECT_EQ(S_IFREG | 0444U, status.st_mode);
  const auto version = Store::open(s).version("v1");
  EXPECT_EQ(std::chrono::system_clock::to_time_t(version.committed_at), status.st_mtime);
}

TEST_F(MountNoSanitizer, EveryCommitInTheJournalIsAFile) {
  const std::string s = make_store();
  Store store = Store::open(s);
  Region region = store.create_region("main", 4 * 4096);
  auto* const words = static_cast<std::uint64_t*>(region.data());
  for (std::uint64_t n = 1; n <= 5; ++n) {
    words[0] = n;
    words[512 * (n % 4)] += n;
    region.commit();
  }
  serve(s);
  EXPECT_EQ((Names{"0", "1", "2", "3", "4", "5"}), names_in(at("at/main")));
  for (std::uint64_t n = 0; n <= 5; ++n) {
    std::uint64_t found = ~n;
    std::ifstream(at("at/main/" + std::to_string(n)))
        .read(reinterpret_cast<char*>(&found), sizeof found);
    EXPECT_EQ(n == 4 ? 8 : n, found);  // commit 4 stores to the first word twice
  }
  for (const char* name : {"at/main/6", "at/main/05", "at/main/x", "at/other", "none", ".x"}) {
    EXPECT_FALSE(fs::exists(at(name))) << name;
  }
}

TEST_F(MountNoSanitizer, NamesFollowTheStore) {
  const std::string s = make_store_with({noise(3, 1)});
  serve(s);
  const std::string first = read_file(at("main"));
  const std::string next = noise(4, 2);
  must({"import", s, "main", file("next", next)});
  EXPECT_EQ(next, read_file(at("main")));
  must({"snapshot", s, "v2", "main"});
  EXPECT_EQ(next, read_file(at("v2")));
  must({"rm", s, "v1"});
  EXPECT_FALSE(fs::exists(at("v1")));
  // Another version of this name is not mistaken for the earlier one.
  must({"snapshot", s, "v1", "main"});
  EXPECT_EQ(next, read_file(at("v1")));
}

TEST_F(MountNoSanitizer, AnOpenFileStaysReadableDuringGc) {
  const std::string content = noise(400, 1);
  const std::string s = make_store_with({content});
  serve(s);
  const int fd = open(at("v1").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  std::string found(content.size(), '\0');
  EXPECT_EQ(4096, pread(fd, found.data(), 4096, 0));
  must({"import", s, "main", file("next", noise(10, 2)), "--snapshot", "v2"});
  must({"import", s, "main", file("last", noise(11, 3)), "--snapshot", "v3"});
  must({"rm", s, "v1", "v2"});
  EXPECT_EQ(1, must({"gc", s, "--json"}).json().at("open_versions"));
  for (std::size_t at_byte = 0; at_byte < found.size();) {
    const ssize_t n =
        pread(fd, &found[at_byte], found.size() - at_byte, static_cast<off_t>(at_byte));
    ASSERT_GT(n, 0) << std::strerror(errno);
    at_byte += static_cast<std::size_t>(n);
  }
  close(fd);
  EXPECT_TRUE(content == found);
  // The kernel notifies the server of the close with a delay.
  std::uint64_t freed = 0, still_open = 1;
  while (still_open != 0) {
    const auto report = must({"gc", s, "--json"}).json();
    still_open = report.at("open_versions");
    freed += report.at("freed_bytes").get<std::uint64_t>();
  }
  EXPECT_GT(freed, 1U << 20);
}

TEST_F(MountNoSanitizer, ProgramsMapCopyAndSkipHoles) {
  constexpr std::size_t kHole = 40 << 20;
  const std::string content = noise(4, 1) + std::string(kHole, '\0') + noise(3, 2) + "needle";
  const std::string s = make_store_with({content});
  serve(s);
  const int fd = open(at("v1").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  for (const int flags : {MAP_SHARED, MAP_PRIVATE}) {
    void* const memory = mmap(nullptr, content.size(), PROT_READ, flags, fd, 0);
    ASSERT_NE(MAP_FAILED, memory);
    EXPECT_EQ(0, std::memcmp(memory, content.data(), content.size()));
    munmap(memory, content.size());
  }
  const int copy = open(path("copy").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  for (off_t from = 0; sendfile(copy, fd, &from, 1 << 20) > 0;) {
  }
  close(copy);
  EXPECT_TRUE(content == read_file(path("copy")));
  const off_t hole = lseek(fd, 0, SEEK_HOLE), data = lseek(fd, hole, SEEK_DATA);
  EXPECT_GT(hole, 0);
  EXPECT_GT(data - hole, static_cast<off_t>(kHole) - (256 << 10));
  EXPECT_EQ(-1, lseek(fd, static_cast<off_t>(content.size()), SEEK_DATA));
  close(fd);
  EXPECT_EQ(0, run_program({"cp", "--sparse=auto", at("v1"), path("sparse")}).status);
  EXPECT_TRUE(content == read_file(path("sparse")));
  struct stat status{};
  ASSERT_EQ(0, stat(path("sparse").c_str(), &status));
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
  EXPECT_EQ(0, run_program({"grep", "-qa", "needle", at("v1")}).status);
}

// As du(1) counts: the blocks of the data, in steps of 64 KiB, and none for holes.
TEST_F(MountNoSanitizer, BlocksShowHoles) {
  constexpr std::size_t kHole = 40 << 20;
  const std::string dense = noise(64, 1);
  const std::string s = make_store_with(
      {dense, noise(16, 2) + std::string(kHole, '\0') + noise(16, 3), std::string(kHole, '\0')});
  serve(s);
  const auto allocated = [&](const std::string& version) {
    struct stat status{};
    EXPECT_EQ(0, stat(at(version).c_str(), &status)) << version;
    return static_cast<std::size_t>(status.st_blocks) * 512;
  };
  EXPECT_EQ(dense.size(), allocated("v1"));
  EXPECT_GE(allocated("v2"), 128U << 10);
  EXPECT_LE(allocated("v2"), 256U << 10);
  EXPECT_EQ(0U, allocated("v3"));
  EXPECT_EQ(allocated("v3"), allocated("main")) << "the same version";
}

TEST_F(MountNoSanitizer, ARemoteIsMountedByItsUrl) {
  const std::string a = noise(300, 1), b = noise(300, 2) + "tail";
  const std::string s = make_store_with({a});
  const std::string url = "file://" + path("remote");
  must({"remote", "add", s, "origin", url});
  must({"push", s, "--all"});
  serve(url);
  EXPECT_EQ((Names{"at", "main", "v1"}), names_in(path("m")));
  EXPECT_TRUE(a == read_file(at("v1")));
  must({"import", s, "main", file("next", b), "--snapshot", "v2"});
  must({"push", s, "--all"});
  // The store was removed; the remote still exists.
  fs::remove_all(s);
  EXPECT_TRUE(a == read_file(at("main"))) << "the names are those of the moment of mounting";
  EXPECT_EQ(0, stop(SIGTERM));
  serve(url);
  EXPECT_EQ((Names{"at", "main", "v1", "v2"}), names_in(path("m")));
  EXPECT_TRUE(b == read_file(at("v2")));
  EXPECT_TRUE(b == read_file(at("main")));
}

TEST_F(MountNoSanitizer, ADatastoreIsADirectory) {
  const std::string files = Datastore::files_directory(path("ds"));
  {
    Datastore datastore = Datastore::create(path("ds"), 1 << 20);
    std::memcpy(datastore.segment(), "objects", 7);
    fs::create_directories(files + "/deep");
    std::ofstream(files + "/names") << "a=1";
    std::ofstream(files + "/deep/free") << "none";
    datastore.commit();
  }
  serve(path("ds/store"));
  EXPECT_EQ((Names{"files", "segment"}), names_in(at("main")));
  EXPECT_EQ((Names{"deep", "names"}), names_in(at("main/files")));
  EXPECT_EQ("a=1", read_file(at("main/files/names")));
  EXPECT_EQ("none", read_file(at("main/files/deep/free")));
  char word[8] = {};
  std::ifstream(at("main/segment")).read(word, 7);
  EXPECT_STREQ("objects", word);
}

TEST_F(MountNoSanitizer, AHundredVersionsAreOpenAtOnce) {
  constexpr unsigned kVersions = 100;
  const std::string s = make_store();
  for (unsigned v = 0; v < kVersions; ++v) {
    must({"import", s, "main", file("f", noise(8, 1) + noise(8, v)), "--snapshot",
          "s" + std::to_string(v)});
  }
  serve(s);
  std::vector<std::thread> readers;
  std::atomic<unsigned> right{0};
  for (unsigned r = 0; r < 10; ++r) {
    readers.emplace_back([&, r] {
      for (unsigned v = r; v < kVersions; v += 10) {
        if (read_file(at("s" + std::to_string(v))) == noise(8, 1) + noise(8, v)) ++right;
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(kVersions, right);
}

TEST_F(MountNoSanitizer, ProcessesReadTheSameVersionConcurrently) {
  const std::string content = noise(2000, 1), s = make_store_with({content});
  serve(s);
  std::vector<test::Child> readers;
  for (unsigned r = 0; r < 4; ++r) {
    readers.push_back(test::start_child([&] {
      const int fd = open(at("v1").c_str(), O_RDONLY | O_CLOEXEC);
      test::require(fd >= 0, "open");
      char page[4096];
      for (std::size_t i = 0; i < 2000; ++i) {
        // Each in a different order; 2000 and these numbers have no common divisor.
        const std::size_t at_byte = i * (r % 2 == 0 ? 1 : 1237 + 2 * r) % 2000 * sizeof page;
        test::require(pread(fd, page, sizeof page, static_cast<off_t>(at_byte)) == sizeof page &&
                          std::memcmp(page, content.data() + at_byte, sizeof page) == 0,
                      "page " + std::to_string(at_byte / sizeof page));
      }
    }));
  }
  for (test::Child& reader : readers) EXPECT_CHILD_EXIT(reader.wait(), 0);
}

TEST_F(MountNoSanitizer, AForgottenVersionCannotBeOpened) {
  const std::string old = noise(200, 1);
  const std::string s = make_store_with({old, noise(200, 2), noise(200, 3)});
  serve(s);
  const int fd = open(at("v1").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  must({"forget", s, "--keep-last", "1"});
  must({"gc", s});
  EXPECT_FALSE(fs::exists(at("v1")));
  EXPECT_FALSE(fs::exists(at("v2")));
  EXPECT_EQ(noise(200, 3), read_file(at("v3")));
  std::string found(old.size(), '\0');
  EXPECT_EQ(static_cast<ssize_t>(found.size()), pread(fd, found.data(), found.size(), 0));
  EXPECT_TRUE(old == found);
  close(fd);
}

TEST_F(MountNoSanitizer, CorruptionFailsTheReadAndTheLogNamesThePack) {
  const std::string content = noise(300, 1), s = make_store_with({content});
  const std::string pack = pack_of(s);
  {
    std::fstream bytes(pack, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(fs::file_size(pack) / 2));
    bytes << "damage";
  }
  serve(s);
  const int fd = open(at("v1").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  std::size_t failed = 0;
  std::string page(4096, '\0');
  for (std::size_t i = 0; i < 300; ++i) {
    if (pread(fd, page.data(), page.size(), static_cast<off_t>(i * page.size())) < 0) {
      EXPECT_EQ(EIO, errno);
      ++failed;
    } else {
      EXPECT_TRUE(page == content.substr(i * page.size(), page.size())) << i;
    }
  }
  EXPECT_GT(failed, 0U);
  EXPECT_LT(failed, 300U);
  EXPECT_NE(std::string::npos, log().find("snapshot 'v1'")) << log();
  EXPECT_NE(std::string::npos, log().find(fs::path(pack).filename())) << log();
  // A mapping gets the signal of an I/O error.
  const test::ChildEnd reader = test::run_child([&] {
    const auto* const bytes = static_cast<const volatile char*>(
        mmap(nullptr, content.size(), PROT_READ, MAP_SHARED, fd, 0));
    char sum = 0;
    for (std::size_t i = 0; i < content.size(); ++i) sum = static_cast<char>(sum ^ bytes[i]);
    _exit(sum == 'x' ? 1 : 2);
  });
  EXPECT_CHILD_SIGNAL(reader, SIGBUS);
  close(fd);
}

// A Python that has the module, or an empty string. VELLUM_TEST_PYTHON names one where python3
// lacks it.
std::string python_with(const std::string& module) {
  const char* const chosen = getenv("VELLUM_TEST_PYTHON");
  const std::string python = chosen != nullptr ? chosen : "python3";
  return run_program({python, "-c", "import " + module}).status == 0 ? python : "";
}

TEST_F(MountNoSanitizer, NumpyMapsAVersion) {
  const std::string python = python_with("numpy");
  if (python.empty()) GTEST_SKIP() << "Python has no numpy";
  std::string content(300 * 4096, '\0');
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < content.size() / sizeof i; ++i) {
    std::memcpy(&content[i * sizeof i], &i, sizeof i);
    sum += i;
  }
  serve(make_store_with({content}));
  const Result result = run_program(
      {python, "-c", "import numpy, sys; print(numpy.memmap(sys.argv[1], 'u8', 'r').sum())",
       at("v1")});
  EXPECT_EQ(std::to_string(sum) + "\n", result.out) << result.err;
}

TEST_F(MountNoSanitizer, DuckDbReadsAVersion) {
  const std::string python = python_with("duckdb");
  if (python.empty()) GTEST_SKIP() << "Python has no duckdb";
  const auto query = [&](const std::string& database, const std::string& text) {
    return run_program({python, "-c",
                        "import duckdb, sys; print(duckdb.connect(sys.argv[1], "
                        "read_only='v1' in sys.argv[1]).execute(sys.argv[2]).fetchall())",
                        database, text});
  };
  const Result made =
      query(path("table.duckdb"), "create table t as select range * 3 as a from range(100000)");
  ASSERT_EQ(0, made.status) << made.err;
  serve(make_store_with({read_file(path("table.duckdb"))}));
  const Result result = query(at("v1"), "select count(*), sum(a) from t");
  EXPECT_EQ("[(100000, 14999850000)]\n", result.out) << result.err;
}

TEST_F(MountNoSanitizer, WritesAreRefused) {
  serve(make_store_with({noise(1, 1)}));
  EXPECT_EQ(-1, open(at("v1").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(EROFS, errno);
  EXPECT_EQ(-1, open(at("new").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(-1, unlink(at("v1").c_str()));
  EXPECT_EQ(EROFS, errno);
}

TEST_F(MountNoSanitizer, OtherUsersHaveNoAccess) {
  if (geteuid() != 0) GTEST_SKIP() << "becoming another user takes root";
  fs::permissions(directory_, fs::perms(0755));
  serve(make_store_with({noise(1, 1)}));
  const Result result = run_program({"cat", at("v1")}, [] {
    constexpr uid_t kNobody = 65534;
    if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(1);
  });
  EXPECT_NE(0, result.status);
  EXPECT_NE(std::string::npos, result.err.find("ermission denied")) << result.err;
}

TEST_F(MountNoSanitizer, TheServerEndsByASignalAndByUnmounting) {
  const std::string s = make_store_with({noise(1, 1)});
  serve(s);
  EXPECT_EQ(0, stop(SIGTERM));
  EXPECT_TRUE(names_in(path("m")).empty());
  must({"mount", s, path("m"), "--background"});
  EXPECT_TRUE(fs::exists(at("v1")));
  EXPECT_EQ(0, umount2(path("m").c_str(), 0));
  EXPECT_TRUE(names_in(path("m")).empty());
}

TEST_F(MountNoSanitizer, TheMountOfAKilledServerIsReplaced) {
  const std::string s = make_store_with({noise(1, 1)});
  serve(s);
  EXPECT_EQ(128 + SIGKILL, stop(SIGKILL));
  struct stat status{};
  EXPECT_EQ(-1, stat(path("m").c_str(), &status));
  EXPECT_EQ(ENOTCONN, errno);
  serve(s);
  EXPECT_TRUE(fs::exists(at("v1")));
}

TEST_F(MountNoSanitizer, ErrorsNameTheirCause) {
  const std::string s = make_store_with({noise(1, 1)});
  expect_failure({"mount", s, path("none")}, 3, "not_found", path("none"));
  expect_failure({"mount", path("none"), path("m")}, 3, "not_found", path("none"));
  expect_failure({"mount", s, file("f", "x")}, 2, "invalid_argument", path("f"));
  fs::create_directory(s + "/m");
  expect_failure({"mount", s, s + "/m"}, 2, "invalid_argument", "is inside the store");
  expect_failure({"mount", s, directory_.string()}, 2, "invalid_argument", "contains the store");
  expect_failure({"mount", path("none"), path("m"), "--background"}, 3, "not_found", path("none"));
}

}  // namespace
}  // namespace vellum::cli_test
