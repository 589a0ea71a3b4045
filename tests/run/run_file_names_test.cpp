// vellum run: names of watched files are removed, renamed and recreated. A program sees and leaves
// the same as without Vellum, and each name's branch has the content of the name.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class RunFileNamesNoSanitizer : public CliTest {
 protected:
  std::string store() const { return path("store"); }

  // Runs it and watches the matching files of a directory.
  Result watched(const std::string& pattern, const Arguments& program) const {
    Arguments out = {"run", "--store", store(), "--file", pattern, "--"};
    out.insert(out.end(), program.begin(), program.end());
    return run(out);
  }
  Result watched_shell(const std::string& pattern, const std::string& script) const {
    return watched(pattern, {"sh", "-c", script});
  }

  std::string exported(const std::string& branch) const {
    const std::string out = path("exported");
    fs::remove(out);
    must({"export", store(), branch, out});
    return read_file(out);
  }

  // Files that the pattern matches are in the store as they are on the disk.
  void expect_stored(const std::string& directory, const std::string& extension) const {
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      if (!entry.is_regular_file() || entry.path().extension() != extension) continue;
      std::string branch = entry.path().string();
      std::replace(branch.begin(), branch.end(), '/', '+');
      EXPECT_TRUE(exported(branch) == read_file(entry.path().string())) << branch;
    }
  }
};

void expect_same_lines(const std::string& plain, const std::string& watched) {
  const auto a = lines_of(plain), b = lines_of(watched);
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    ASSERT_EQ(a[i], b[i]) << "after " << (i > 0 ? a[i - 1] : "") << "\n"
                          << (i > 1 ? a[i - 2] : "") << "\n"
                          << (i > 2 ? a[i - 3] : "");
  EXPECT_EQ(a.size(), b.size());
}

std::map<std::string, std::string> files_below(const std::string& directory) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file())
      out[fs::relative(entry.path(), directory).string()] = read_file(entry.path().string());
  return out;
}

TEST_F(RunFileNamesNoSanitizer, AnySequenceOfNameChangesBehavesAsWithoutVellum) {
  for (unsigned seed = 1; seed <= 8 && !HasFailure(); ++seed) {
    const std::string number = std::to_string(seed), steps = "150";
    SCOPED_TRACE("seed " + number);
    fs::remove_all(path("plain"));
    fs::remove_all(path("watched"));
    fs::create_directory(path("plain"));
    fs::create_directory(path("watched"));
    const Result plain = run_program({VELLUM_NAME_SEQUENCES, path("plain"), number, steps});
    ASSERT_EQ(0, plain.status) << plain.err;
    const Result under =
        watched(path("watched") + "/*.db", {VELLUM_NAME_SEQUENCES, path("watched"), number, steps});
    EXPECT_EQ(0, under.status) << under.err;
    EXPECT_EQ(std::string::npos, under.err.find("another program")) << under.err;
    // A file that moves with its directory, and is not open, is found when the run ends.
    for (const char* name : {"a.db", "b.db"})
      EXPECT_EQ(std::string::npos, under.err.find(std::string(name) + ": changed around"))
          << under.err;
    expect_same_lines(plain.out, under.out);
    EXPECT_TRUE(files_below(path("plain")) == files_below(path("watched")));
    expect_stored(path("watched"), ".db");
  }
}

TEST_F(RunFileNamesNoSanitizer, ARemovedAndCopiedFileIsTheCopy) {
  const std::string big = file("big", noise(300, 1)), small = file("small", "small"),
                    name = path("m.db");
  const Result result =
      watched_shell(name, "cp " + big + " " + name + "; rm " + name + "; cp " + small + " " + name);
  EXPECT_EQ(0, result.status) << result.err;
  EXPECT_EQ("small", read_file(name));
  EXPECT_EQ("small", exported("main"));
}

// The earlier content is a version, in order.
TEST_F(RunFileNamesNoSanitizer, TheHistoryOfANameContinues) {
  const std::string name = path("m.db");
  const std::string script = "for i in 1 2 3; do echo -n $i > " + name + "; rm " + name +
                             "; done; echo -n 4 > " + path("second") + "; mv " + path("second") +
                             " " + name;
  must({"run", "--store", store(), "--file", name, "--snapshot-every-commits", "1", "--", "sh",
        "-c", script});
  std::string found;
  std::vector<std::string> kept = lines_of(must({"snapshot", store(), "--names"}).out);
  std::sort(kept.begin(), kept.end());
  for (const std::string& version : kept) found += exported(version);
  EXPECT_EQ("123", found) << "4 is the head";
  EXPECT_EQ("4", exported("main"));
}

TEST_F(RunFileNamesNoSanitizer, AFileRenamedOntoTheNameIsACommit) {
  const std::string name = path("m.db"), second = path("m.db.lock");
  file("m.db", "before");
  const Result result = watched_shell(
      name, "printf new > " + second + "; mv " + second + " " + name + "; cat " + name);
  EXPECT_EQ("new", result.out) << result.err;
  EXPECT_EQ("new", exported("main"));
  // A program without the library does so, too: its change is found at the end, at the latest.
  watched_shell(name,
                "printf unseen > " + second + "; env -u LD_PRELOAD mv " + second + " " + name);
  EXPECT_EQ("unseen", exported("main"));
  EXPECT_EQ("unseen", read_file(name));
}

TEST_F(RunFileNamesNoSanitizer, DatabasesCanBeRemovedAndRecreated) {
  const std::string script = path("made_anew.py");
  write_file(script, R"(
import os, sqlite3, zipfile
try: import dbm.gnu as gnu
except ImportError: gnu = None
for turn in range(3):
    for name in ('q.db', 'g.db', 'z.db'):
        if os.path.exists(name): os.unlink(name)
    db = sqlite3.connect('q.db')
    db.execute('create table t(x)')
    db.executemany('insert into t values(?)', [(i,) for i in range(1000 * (3 - turn))])
    db.commit()
    print(db.execute('select count(*) from t').fetchone(), db.execute('pragma integrity_check').fetchone())
    db.close()
    if gnu:
        g = gnu.open('g.db', 'n')
        for i in range(500 * (3 - turn)): g[str(i)] = 'x' * i
        g.close()
        print(len(gnu.open('g.db', 'r').keys()))
    with zipfile.ZipFile('z.db', 'w') as z: z.writestr('member', 'y' * 100000 * (3 - turn))
    with zipfile.ZipFile('z.db', 'a') as z: z.writestr('second', 'z')
    print(zipfile.ZipFile('z.db').testzip(), zipfile.ZipFile('z.db').namelist())
    os.rename('z.db', 'old.db')
)");
  const auto in = [&](const char* directory) {
    fs::create_directory(path(directory));
    return "cd " + path(directory) + " && exec python3 " + script;
  };
  const Result plain = run_program({"sh", "-c", in("plain")});
  ASSERT_EQ(0, plain.status) << plain.err;
  const Result under = watched_shell(path("watched") + "/*.db", in("watched"));
  EXPECT_EQ(0, under.status) << under.err;
  EXPECT_EQ(plain.out, under.out);
  expect_stored(path("watched"), ".db");
}

TEST_F(RunFileNamesNoSanitizer, AnLmdbEnvironmentCanBeRemovedAndRecreated) {
  const std::string directory = path("env"), writer = VELLUM_LMDB_WRITER;
  fs::create_directory(directory);
  const std::string once = writer + " few " + directory;
  const Result result =
      watched_shell(directory + "/data.mdb", "set -e; " + once + "; rm " + directory + "/*; " +
                                                 once + "; " + writer + " check " + directory);
  EXPECT_EQ(0, result.status) << result.err;
  EXPECT_EQ(0, run_program({writer, "check", directory}).status);
  EXPECT_TRUE(exported("main") == read_file(directory + "/data.mdb"));
}

TEST_F(RunFileNamesNoSanitizer, GitWorksOnWatchedFiles) {
  if (run_program({"git", "--version"}).status != 0) GTEST_SKIP() << "no git";
  const std::string work = path("work");
  fs::create_directory(work);
  const std::string git = "git -C " + work + " -c user.name=n -c user.email=e@e ";
  const std::string script = "set -e; " + git + "init -q; for i in 1 2 3; do echo $i > " + work +
                             "/f$i; " + git + "add .; " + git + "commit -q -m $i; done; " + git +
                             "gc -q; " + git + "checkout -q -b side HEAD~1; " + git +
                             "fsck --strict; " + git + "log --oneline | wc -l";
  const Result result = watched_shell(work + "/.git/*", script);
  EXPECT_EQ(0, result.status) << result.err;
  EXPECT_EQ("2\n", result.out) << result.err;
  EXPECT_EQ(0, run_program({"git", "-C", work, "fsck", "--strict"}).status);
  std::string branch = work + "/.git/HEAD";
  std::replace(branch.begin(), branch.end(), '/', '+');
  EXPECT_EQ("ref: refs/heads/side\n", exported(branch));
}

}  // namespace
}  // namespace vellum::cli_test
