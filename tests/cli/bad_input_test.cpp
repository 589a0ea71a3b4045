// The messages and exit statuses of `vellum` after errors: the table in vellum(1), EXIT STATUS.
#include <algorithm>
#include <cstring>
#include <functional>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vellum/store.hpp>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

constexpr std::size_t kPage = 4096;

class BadInput : public CliTest {};

TEST_F(BadInput, UsageErrorsExitWith2) {
  const std::string s = make_store_with({noise(2, 1)});
  const std::string fresh = path("fresh");
  const std::string code = "invalid_argument";
  expect_failure({"frobnicate"}, 2, code, "frobnicate");
  expect_failure({"log"}, 2, code, "STORE");
  expect_failure({"show", s}, 2, code, "VERSION");
  expect_failure({"log", s, "--frobnicate"}, 2, code, "--frobnicate");
  expect_failure({"log", s, "main", "more"}, 2, code, "more");
  expect_failure({"init", fresh, "--compression", "zip"}, 2, code, "zip");
  expect_failure({"init", fresh, "--level", "20"}, 2, code, "--level");
  expect_failure({"init", fresh, "--level", "3", "--compression", "lz4"}, 2, code, "lz4");
  expect_failure({"init", fresh, "--block", "5K"}, 2, code, "power of two");
  expect_failure({"init", fresh, "--block", "1G"}, 2, code, "1073741824");
  expect_failure({"init", fresh, "--block", "8G"}, 2, code, "8G");
  expect_failure({"init", fresh, "--block", "64KB"}, 2, code, "64KB");
  expect_failure({"init", fresh, "--block", "0x"}, 2, code, "0x");
  expect_failure({"init", fresh, "--pack-size", "-1"}, 2, code, "-1");
  expect_failure({"init", fresh, "--pack-size", "99999999T"}, 2, code, "99999999T");
  expect_failure({"init", fresh, "--pack-size", "99999999999999999999"}, 2, code, "too large");
  expect_failure({"init", fresh, "--pack-size", ""}, 2, code, "--pack-size");
  expect_failure({"cat", s, "v1", "--offset", "9000"}, 2, code, "8192 bytes");
  expect_failure({"cat", s, "main", "--offset", "1", "--length", "8192"}, 2, code, "8192 bytes");
  expect_failure({"cat", s, "v1", "--length", ""}, 2, code, "--length");
  EXPECT_FALSE(std::filesystem::exists(fresh));
}

TEST_F(BadInput, NoCommandIsAUsageError) {
  const Result result = run({});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("vellum --help"), std::string::npos);
}

TEST_F(BadInput, MalformedNamesExitWith2) {
  const std::string s = make_store_with({noise(1, 1)});
  const std::string f = file("f", noise(1, 2));
  const std::string code = "invalid_argument";
  const std::string too_long(201, 'n');
  for (const std::string& name : {std::string("a/b"), std::string("../x"), std::string(".hidden"),
                                  std::string("a b"), std::string("a\nb"), too_long}) {
    const std::string named = name == "a\nb" ? "name" : name;
    const auto status_of = [&](const Arguments& arguments) {
      const Result result = run(arguments);
      EXPECT_EQ(result.status, 2) << arguments[0] << " " << name << ": " << result.err;
      EXPECT_NE(result.err.find(named), std::string::npos) << result.err;
    };
    status_of({"snapshot", s, name});
    status_of({"branch", s, name});
    status_of({"import", s, name, f});
    status_of({"import", s, "main", f, "--snapshot", name});
  }
  expect_failure({"snapshot", s, ""}, 2, code, "NAME");
  expect_failure({"import", s, "main", f, "--snapshot", ""}, 2, code, "--snapshot");
  EXPECT_EQ(must({"log", s, "--names"}).out, "main\nv1\n");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "x"));
}

TEST_F(BadInput, MissingObjectsExitWith3) {
  const std::string s = make_store_with({noise(1, 1)});
  const std::string code = "not_found";
  expect_failure({"log", path("nowhere")}, 3, code, path("nowhere"));
  expect_failure({"verify", path("nowhere")}, 3, code, path("nowhere"));
  expect_failure({"init", path("no/parent")}, 3, code, path("no/parent"));
  expect_failure({"show", s, "gone"}, 3, code, "gone");
  expect_failure({"show", s, "a/b"}, 3, code, "a/b");
  expect_failure({"show", s, "../v1"}, 3, code, "../v1");
  expect_failure({"log", s, "gone"}, 3, code, "gone");
  expect_failure({"diff", s, "v1", "gone"}, 3, code, "gone");
  expect_failure({"diff", s, "gone", "v1"}, 3, code, "gone");
  expect_failure({"cat", s, "gone"}, 3, code, "gone");
  expect_failure({"export", s, "gone", path("out")}, 3, code, "gone");
  expect_failure({"export", s, "v1", path("no/out")}, 3, code, path("no/out"));
  expect_failure({"import", s, "main", path("gone")}, 3, code, path("gone"));
  expect_failure({"branch", s, "new", "gone"}, 3, code, "gone");
  expect_failure({"snapshot", s, "new", "gone"}, 3, code, "gone");
  expect_failure({"rm", s, "gone"}, 3, code, "gone");
  expect_failure({"rm", s, "--branch", "gone"}, 3, code, "gone");
  expect_failure({"forget", s, "--branch", "gone", "--keep-last", "1"}, 3, code, "gone");
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

TEST_F(BadInput, TakenNamesExitWith4) {
  const std::string s = make_store_with({noise(1, 1)});
  const std::string code = "already_exists";
  const std::string out = file("out", "precious");
  expect_failure({"init", s}, 4, code, s);
  expect_failure({"init", directory_.string()}, 4, code, directory_.string());
  expect_failure({"init", out}, 4, code, out);
  expect_failure({"snapshot", s, "v1"}, 4, code, "v1");
  expect_failure({"snapshot", s, "main"}, 4, code, "main");
  expect_failure({"branch", s, "v1"}, 4, code, "v1");
  expect_failure({"branch", s, "main", "v1"}, 4, code, "main");
  expect_failure({"import", s, "v1", file("f", noise(1, 2))}, 4, code, "v1");
  expect_failure({"export", s, "v1", out}, 4, code, out);
  EXPECT_EQ(read_file(out), "precious");
}

TEST_F(BadInput, APathThatIsNotAStoreExitsWith5) {
  const std::string code = "not_a_store";
  std::filesystem::create_directory(path("dir"));
  const std::string f = file("plain", "text");
  for (const std::string& at : {path("dir"), f}) {
    expect_failure({"log", at}, 5, code, at);
    expect_failure({"stat", at}, 5, code, at);
    expect_failure({"attach", at, "main", f}, 5, code, at);
  }
  file("dir/vellum.store", "something else altogether, long enough to be a superblock, is it not");
  expect_failure({"log", path("dir")}, 5, code, path("dir"));
}

TEST_F(BadInput, ANewerFormatExitsWith6AndIsNotChanged) {
  const std::string s = make_store_with({noise(1, 1)});
  std::string superblock = read_file(s + "/vellum.store");
  superblock[8] = 99;  // the format's version always follows the magic of 8 bytes
  write_file(s + "/vellum.store", superblock);
  for (const Arguments& arguments :
       {Arguments{"log", s}, Arguments{"verify", s}, Arguments{"snapshot", s, "x"},
        Arguments{"import", s, "main", file("f", noise(1, 2))}}) {
    expect_failure(arguments, 6, "newer_format", s);
  }
  EXPECT_EQ(read_file(s + "/vellum.store"), superblock);
}

TEST_F(BadInput, ASecondWriterExitsWith7) {
  const std::string s = make_store_with({noise(1, 1)});
  Store store = Store::open(s);
  Region region = store.open_region("main");
  const std::string f = file("f", noise(1, 2));
  expect_failure({"import", s, "main", f}, 7, "busy", "main");
  expect_failure({"rm", s, "--branch", "main"}, 7, "busy", "main");
  // Readers still work.
  EXPECT_EQ(must({"cat", s, "main"}).out, noise(1, 1));
  must({"verify", s, "--read-data"});
  region.close();
  must({"import", s, "main", f});
}

TEST_F(BadInput, UnusableFilesToImport) {
  const std::string s = make_store();
  const std::string code = "invalid_argument";
  std::filesystem::create_directory(path("dir"));
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  expect_failure({"import", s, "main", path("dir")}, 2, code, path("dir"));
  expect_failure({"import", s, "main", path("fifo")}, 2, code, path("fifo"));
  expect_failure({"import", s, "main", "/dev/zero"}, 2, code, "/dev/zero");
  EXPECT_EQ(must({"branch", s, "--names"}).out, "");
}

TEST_F(BadInput, RestoreTellsThatOtherNamesKeepTheOldContent) {
  const std::string s = make_store_with({noise(1, 1)}), data = file("data", "old");
  EXPECT_EQ(must({"restore", s, "v1", data}).err, "");
  std::filesystem::create_hard_link(data, path("second"));
  const Result result = must({"restore", s, "v1", data});
  EXPECT_TRUE(contains(result.err, data + ": the file's other names")) << result.err;
}

TEST_F(BadInput, ALinkThatLeadsToNoFileIsNotReplaced) {
  const std::string s = make_store_with({noise(1, 1)});
  for (const auto& [link, target] : {std::pair("dangling", "nowhere"), std::pair("loop", "loop")}) {
    std::filesystem::create_symlink(path(target), path(link));
    expect_failure({"restore", s, "v1", path(link)}, 2, "invalid_argument", path(link));
    expect_failure({"recover", path(link)}, 2, "invalid_argument", path(link));
    EXPECT_TRUE(std::filesystem::is_symlink(path(link)));
    EXPECT_FALSE(std::filesystem::exists(path("nowhere")));
  }
}

TEST_F(BadInput, ARegionTooLargeExitsWith2) {
  const std::string s = make_store();
  // ext4 has no files of this size; tmpfs has.
  const std::string huge = "/dev/shm/vellum-cli-test-huge." + std::to_string(::getpid());
  write_file(huge, "");
  const bool made = ::truncate(huge.c_str(), (off_t{1} << 46) + 1) == 0;
  if (made) {
    expect_failure({"import", s, "main", huge}, 2, "invalid_argument", "too large");
    EXPECT_EQ(must({"branch", s, "--names"}).out, "");
  }
  std::filesystem::remove(huge);
  if (!made) {
    GTEST_SKIP() << "no file system here holds a sparse file of 64 TiB";
  }
}

TEST_F(BadInput, AnOverlongMessageExitsWith2) {
  const std::string s = make_store_with({noise(1, 1)});
  const std::string message(5000, 'm');
  expect_failure({"snapshot", s, "x", "main", "-m", message}, 2, "invalid_argument", "message");
  expect_failure({"import", s, "main", file("f", noise(1, 2)), "-m", message}, 2,
                 "invalid_argument", "message");
  EXPECT_EQ(must({"cat", s, "main"}).out, noise(1, 1));
}

TEST_F(BadInput, NoPermissionExitsWith10) {
  const std::string s = make_store();
  std::filesystem::permissions(directory_, std::filesystem::perms::none);
  const Result result = run({"--json", "log", s}, [] {
    constexpr uid_t kNobody = 65534;  // root has access to everything
    if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) {
      ::_exit(kExecFailed);
    }
  });
  std::filesystem::permissions(directory_, std::filesystem::perms::owner_all);
  if (result.status == kExecFailed) {
    GTEST_SKIP() << "another user cannot run the program";
  }
  EXPECT_EQ(result.status, 10);
  EXPECT_EQ(result.json().at("error").at("code"), "io");
  EXPECT_NE(result.err.find(s), std::string::npos) << result.err;
}

// A private mount for one command, which ends with the process. Empty if this machine does not
// allow it.
class OnOwnMount : public CliTest {
 protected:
  // `script` runs with the mount at $1, the program at $0 and `arguments` as $2...
  static Result run_script(const std::string& script, const Arguments& arguments) {
    Arguments argv{"unshare", ::geteuid() == 0 ? "-m" : "-rm", "sh", "-c", script, VELLUM_CLI};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run_program(argv);
  }
  static bool mounts_allowed(const std::string& at) {
    return run_script("mount -t tmpfs -o size=1m none \"$1\"", {at}).status == 0;
  }
};

TEST_F(OnOwnMount, AFullDiskExitsWith9) {
  std::filesystem::create_directory(path("small"));
  if (!mounts_allowed(path("small"))) {
    GTEST_SKIP() << "no mounts here";
  }
  const std::string big = file("big", noise(2500, 1));
  const std::string source = make_store_with({noise(2500, 2)});
  const Result import = run_script(
      "mount -t tmpfs -o size=4m none \"$1\" && \"$0\" init \"$1/s\" -q && "
      "\"$0\" --json import \"$1/s\" main \"$2\"; status=$?; "
      "\"$0\" verify --read-data -q \"$1/s\" || status=99; exit $status",
      {path("small"), big});
  EXPECT_EQ(import.status, 9) << import.err;
  EXPECT_NE(import.err.find(path("small")), std::string::npos) << import.err;
  EXPECT_EQ(import.json().at("error").at("code"), "no_space");
  const Result exported = run_script(
      "mount -t tmpfs -o size=4m none \"$1\" && \"$0\" export \"$2\" v1 \"$1/out\"; "
      "status=$?; test ! -e \"$1/out\" || status=99; exit $status",
      {path("small"), source});
  EXPECT_EQ(exported.status, 9) << exported.err;
  const Result redirected =
      run_script("mount -t tmpfs -o size=4m none \"$1\" && \"$0\" cat \"$2\" v1 >\"$1/out\"",
                 {path("small"), source});
  EXPECT_EQ(redirected.status, 9) << redirected.err;
}

TEST_F(OnOwnMount, AReadOnlyMediumExitsWith8AndCanBeRead) {
  std::filesystem::create_directory(path("small"));
  if (!mounts_allowed(path("small"))) {
    GTEST_SKIP() << "no mounts here";
  }
  const std::string s = make_store_with({noise(10, 1)});
  const std::string f = file("f", noise(10, 2));
  const std::string mount = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" && ";
  const auto status = [&](const std::string& command) {
    const Result result = run_script(mount + "\"$0\" " + command, {s, f});
    if (result.status != 0) {
      EXPECT_NE(result.err.find(s), std::string::npos) << result.err;
    }
    return result.status;
  };
  EXPECT_EQ(status("import \"$1\" main \"$2\""), 8);
  EXPECT_EQ(status("snapshot \"$1\" x"), 8);
  EXPECT_EQ(status("branch \"$1\" x"), 8);
  EXPECT_EQ(status("rm \"$1\" v1"), 8);
  EXPECT_EQ(status("rm \"$1\" --branch main"), 8);
  EXPECT_EQ(status("init \"$1/new\""), 8);
  EXPECT_EQ(status("log \"$1\""), 0);
  EXPECT_EQ(status("stat \"$1\""), 0);
  EXPECT_EQ(status("verify \"$1\" --read-data"), 0);
  EXPECT_EQ(status("diff \"$1\" v1 main"), 0);
  EXPECT_EQ(run_script(mount + "\"$0\" cat \"$1\" main", {s}).out, noise(10, 1));
}

class Corrupted : public CliTest {};

// Every command must report this damage of a store.
void expect_damage_found(const std::string& store, const std::string& object,
                         const std::vector<std::string>& versions) {
  const Result text = run({"verify", store, "--read-data"});
  EXPECT_EQ(text.status, 11) << text.err;
  EXPECT_NE(text.out.find("corrupted  "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(object), std::string::npos) << text.out;
  const Result result = run({"verify", store, "--read-data", "--json"});
  EXPECT_EQ(result.status, 11);
  const auto report = result.json();
  EXPECT_EQ(report.at("ok"), false);
  EXPECT_EQ(report.at("error").at("code"), "corrupted");
  EXPECT_EQ(report.at("error").at("exit_status"), 11);
  ASSERT_FALSE(report.at("damages").empty());
  std::string hurt;
  for (const auto& damage : report.at("damages")) {
    EXPECT_FALSE(damage.at("reason").get<std::string>().empty());
    hurt += damage.at("versions").dump();
  }
  for (const std::string& version : versions) {
    EXPECT_NE(hurt.find(version), std::string::npos) << version << " is not in " << hurt;
  }
  const Result quiet = run({"verify", store, "--read-data", "--quiet"});
  EXPECT_EQ(quiet.status, 11);
  EXPECT_EQ(quiet.out, "");
  EXPECT_NE(quiet.err, "");
}

TEST_F(Corrupted, ATruncatedPackExitsWith11) {
  const std::string s = make_store_with({noise(100, 1)});
  const std::string pack = pack_of(s);
  std::filesystem::resize_file(pack, std::filesystem::file_size(pack) / 2);
  expect_damage_found(s, pack, {"v1", "main"});
  EXPECT_EQ(run({"verify", s}).status, 11);  // also without reading the data
  expect_failure({"cat", s, "v1"}, 11, "corrupted", pack);
  expect_failure({"cat", s, "main"}, 11, "corrupted", pack);
  expect_failure({"export", s, "v1", path("out")}, 11, "corrupted", pack);
  EXPECT_FALSE(std::filesystem::exists(path("out")));
  EXPECT_EQ(run({"log", s}).status, 0);
}

TEST_F(Corrupted, AMissingPackExitsWith11) {
  const std::string s = make_store_with({noise(100, 1)});
  const std::string pack = pack_of(s);
  std::filesystem::remove(pack);
  expect_damage_found(s, pack, {"v1", "main"});
  expect_failure({"cat", s, "v1"}, 11, "corrupted", pack);
}

TEST_F(Corrupted, VerifyNamesTheVersionsThatAFlippedBitAffects) {
  const std::string s = make_store_with({noise(100, 1), noise(100, 2)});
  const std::string pack = pack_of(s);
  std::string bytes = read_file(pack);
  const std::string lost = noise(100, 1).substr(50 * kPage, 64);
  const std::size_t at = bytes.find(lost);
  ASSERT_NE(at, std::string::npos) << "noise is expected to be stored as it is";
  bytes[at] ^= 1;
  write_file(pack, bytes);
  expect_damage_found(s, pack, {"v1"});
  const auto report = run({"verify", s, "--read-data", "--json"}).json();
  EXPECT_EQ(report.at("damages")[0].at("versions").dump().find("v2"), std::string::npos);
  expect_failure({"cat", s, "v1"}, 11, "corrupted", pack);
  EXPECT_EQ(must({"cat", s, "v2"}).out, noise(100, 2));
  expect_failure({"cat", s, "v1", "--offset", "200K", "--length", "1"}, 11, "corrupted", "v1");
}

// The ranges before the damage are already printed, and the object must still be complete.
TEST_F(Corrupted, DiffOfACorruptedVersionPrintsOneObject) {
  const std::string first = noise(600, 1);
  const std::string s = make_store_with({first, noise(600, 2)});
  const std::string pack = pack_of(s);
  std::string bytes = read_file(pack);
  const std::size_t at = bytes.find(first.substr(590 * kPage, 64));
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  write_file(pack, bytes);
  for (const char* list : {"--json", "--pages", "--summary"}) {
    const Result result = run({"diff", s, "v1", "v2", list, "--json"});
    EXPECT_EQ(result.status, 11);
    EXPECT_EQ(result.json().at("error").at("code"), "corrupted");
    EXPECT_FALSE(result.json().contains("bytes_different"));
  }
  EXPECT_EQ(run({"diff", s, "v1", "v2"}).status, 11);
}

TEST_F(Corrupted, ACorruptedRefExitsWith11) {
  const std::string s = make_store_with({noise(2, 1)});
  std::string ref;
  for (const auto& entry : std::filesystem::directory_iterator(s + "/snapshots")) {
    ref = entry.path().string();
  }
  std::string bytes = read_file(ref);
  bytes[bytes.size() / 2] ^= 1;
  write_file(ref, bytes);
  expect_damage_found(s, ref, {"v1"});
  expect_failure({"show", s, "v1"}, 11, "corrupted", ref);
  EXPECT_EQ(must({"cat", s, "main"}).out, noise(2, 1));
}

TEST_F(Corrupted, ACorruptedSuperblockExitsWith11) {
  const std::string s = make_store();
  std::string bytes = read_file(s + "/vellum.store");
  bytes[40] ^= 1;
  write_file(s + "/vellum.store", bytes);
  expect_failure({"log", s}, 11, "corrupted", s + "/vellum.store");
  expect_failure({"verify", s}, 11, "corrupted", s + "/vellum.store");
}

TEST_F(Corrupted, ALinkOutOfTheStoreIsRefused) {
  const std::string s = make_store_with({noise(2, 1)});
  std::filesystem::create_directory(path("outside"));
  std::filesystem::remove_all(s + "/tmp");
  std::filesystem::create_directory_symlink(path("outside"), s + "/tmp");
  expect_failure({"import", s, "main", file("f", noise(2, 2))}, 11, "corrupted", s + "/tmp");
  EXPECT_TRUE(std::filesystem::is_empty(path("outside")));
}

// 12: the error is neither the program's nor its input's.
TEST_F(BadInput, TooLittleMemoryExitsWith12NoSanitizer) {
  const std::string s = make_store();
  const std::string big = path("big");
  write_file(big, "");
  std::filesystem::resize_file(big, std::uint64_t{1} << 32);
  const auto little_address_space = [] {
    const struct rlimit limit{1u << 29, 1u << 29};
    ::setrlimit(RLIMIT_AS, &limit);
  };
  const Result result = run({"--json", "attach", s, "main", big}, little_address_space);
  EXPECT_EQ(result.status, 12) << result.err;
  EXPECT_EQ(result.json().at("error").at("code"), "out_of_memory");
}

}  // namespace
}  // namespace vellum::cli_test
