// Help, and suggestions for a misspelled or misplaced word.
#include <algorithm>
#include <cctype>
#include <sstream>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

class Spelling : public CliTest {
 protected:
  static void expect_hint(const Arguments& arguments, const std::string& meant) {
    const Result result = run(arguments);
    EXPECT_NE(result.status, 0);
    EXPECT_NE(result.err.find("did you mean '" + meant + "'?"), std::string::npos) << result.err;
  }
  static void expect_no_hint(const Arguments& arguments) {
    const Result result = run(arguments);
    EXPECT_NE(result.status, 0);
    EXPECT_EQ(result.err.find("did you mean"), std::string::npos) << result.err;
  }
};

TEST_F(Spelling, HelpPrintsTheSameAsTheOption) {
  EXPECT_EQ(must({"help"}).out, must({"--help"}).out);
  EXPECT_EQ(must({"help", "export"}).out, must({"export", "--help"}).out);
  EXPECT_EQ(must({"help", "tier", "add"}).out, must({"tier", "add", "--help"}).out);
  EXPECT_EQ(must({"help", "ls"}).out, must({"log", "--help"}).out);
  expect_failure({"help", "exprot"}, 2, "invalid_argument", "did you mean 'export'?");
  EXPECT_EQ(must({"-V"}).out, must({"--version"}).out);
}

TEST_F(Spelling, LsPrintsTheSameAsLog) {
  const std::string s = make_store_with({noise(1, 1), noise(1, 2)});
  EXPECT_EQ(must({"ls", s}).out, must({"log", s}).out);
  EXPECT_EQ(must({"ls", s, "--names"}).out, "main\nv2\nv1\n");
}

TEST_F(Spelling, MisspelledCommandsAndOptionsGetSuggestions) {
  const std::string s = make_store_with({noise(1, 1)});
  expect_hint({"lgo", s}, "log");
  expect_hint({"snaphot", s, "x"}, "snapshot");
  expect_hint({"log", s, "--name"}, "--names");
  expect_hint({"verify", s, "--raed-data"}, "--read-data");
  expect_hint({"--jsno", "log", s}, "--json");
  expect_hint({"forget", s, "--keep-las=3"}, "--keep-last");
  expect_no_hint({"frobnicate", s});
  expect_no_hint({"log", s, "--frobnicate"});
}

TEST_F(Spelling, MisspelledVersionsAndFilesGetSuggestions) {
  const std::string s = make_store_with({noise(1, 1)});
  must({"snapshot", s, "release-1.0"});
  const std::string f = file("graph.bin", noise(1, 2));
  expect_hint({"show", s, "mian"}, "main");
  expect_hint({"cat", s, "release-1"}, "release-1.0");
  expect_hint({"diff", s, "v1", "relaese-1.0"}, "release-1.0");
  expect_hint({"rm", s, "release1.0"}, "release-1.0");
  expect_hint({"export", s, "V1", path("out")}, "v1");
  expect_hint({"import", s, "main", path("graph.bni")}, f);
  expect_hint({"log", path("stoer")}, s);
  expect_no_hint({"show", s, "something"});
  // A correct argument gets no suggestion.
  expect_no_hint({"export", s, "v1", path("no/out")});
  EXPECT_EQ(run({"show", s, "mian", "--json"}).json().at("error").at("code"), "not_found");
}

// STORE is first; the other order is accepted if it is unambiguous.
TEST_F(Spelling, StoreAndFileMayBeSwapped) {
  const std::string f = file("data", noise(1, 1)), s = path("store");
  must({"backup", s, f, "--name", "one"});
  write_file(f, noise(1, 2));
  must({"backup", f, s, "--name", "two"});
  EXPECT_EQ(must({"cat", s, "two"}).out, noise(1, 2));
  must({"export", path("out"), "one", s});
  EXPECT_EQ(read_file(path("out")), noise(1, 1));
  must({"restore", f, "one", s});
  EXPECT_EQ(read_file(f), noise(1, 1));
  must({"import", f, "side", s});
  EXPECT_EQ(must({"cat", s, "side"}).out, noise(1, 1));
  // Neither is a store: the first would be created, but is a file.
  expect_failure({"backup", f, path("other"), "--name", "x"}, 3, "not_found", path("other"));
  EXPECT_FALSE(std::filesystem::exists(path("other")));
}

TEST_F(Spelling, SnapshotAndBranchCannotShareAName) {
  const std::string f = file("data", noise(1, 1)), s = path("store");
  expect_failure({"backup", s, f, "--name", "x", "--branch", "x"}, 2, "invalid_argument",
                 "snapshot and branch are both called 'x'");
  EXPECT_FALSE(std::filesystem::exists(s));
  make_store();
  expect_failure({"import", s, "x", f, "--snapshot", "x"}, 2, "invalid_argument",
                 "snapshot and branch are both called 'x'");
  EXPECT_EQ(must({"log", s, "--names"}).out, "");
}

TEST_F(Spelling, GcThatFreesNothingPrintsTheReason) {
  const std::string s = make_store_with({noise(20, 1)});
  const Result gc = must({"gc", s});
  EXPECT_NE(gc.err.find("needed by 1 snapshot and 1 branch"), std::string::npos) << gc.err;
  EXPECT_EQ(must({"gc", s, "--quiet"}).err, "");
  EXPECT_EQ(must({"gc", s, "--json"}).err, "");
  must({"import", s, "main", file("f", noise(20, 2))});
  must({"rm", s, "v1"});
  EXPECT_EQ(must({"gc", s}).err, "");
}

TEST_F(Spelling, RepairSavesRemovedVersionsOnlyOnRequest) {
  const std::string s = make_store_with({noise(20, 1), noise(20, 2)});
  must({"branch", s, "side", "v1"});
  must({"import", s, "side", file("f", noise(20, 3))});
  must({"rm", s, "v1"});
  must({"rm", s, "--branch", "side"});
  must({"repair", s, "--to", path("a")});
  EXPECT_EQ(must({"log", path("a"), "--names"}).out, "main\nv2\n");
  must({"repair", s, "--to", path("b"), "--removed"});
  EXPECT_NE(must({"log", path("b"), "--names"}).out.find("recovered-"), std::string::npos);
}

// Each command, with each of its arguments empty, missing, or of another kind: a clear error that
// names the argument, within the exit statuses of vellum(1), and nothing is created.
struct Usage {
  const char*
      words;  // S: a store, F: a file, V: a version, B: a branch, N: a new path, M: a new name
};

constexpr Usage kUsages[] = {
    {"init N"},
    {"log S V"},
    {"show S V"},
    {"stat S"},
    {"diff S V V"},
    {"cat S V"},
    {"export S V N"},
    {"import S B F"},
    {"attach S B F"},
    {"backup S F --name M"},
    {"restore S V F"},
    {"branch S M V"},
    {"snapshot S M V"},
    {"rm S V"},
    {"forget S --keep-last 1"},
    {"gc S"},
    {"tier list S"},
    {"tier add S cache N"},
    {"tier remove S N"},
    {"tier limit S N 1M"},
    {"tier move S archive"},
    {"tier apply S"},
    {"verify S"},
    {"repair S --to N"},
    {"recover F"},
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

class EachArgument : public CliTest {
 protected:
  Arguments meant(const std::vector<std::string>& words) const {
    Arguments out = words;
    for (std::string& word : out) {
      if (word == "S") word = path("store");
      if (word == "F") word = path("file");
      if (word == "V") word = "v1";
      if (word == "B") word = "main";
      if (word == "N") word = path("new");
      if (word == "M") word = "new";
    }
    return out;
  }
  static bool is_argument(const std::string& word) {
    return word.size() == 1 && std::isupper(static_cast<unsigned char>(word[0])) != 0;
  }
};

TEST_F(EachArgument, ThatIsEmptyMissingOrOfAnotherKindIsAClearError) {
  make_store_with({noise(1, 1)});
  file("file", noise(1, 2));
  std::filesystem::create_directory(path("directory"));
  const std::string before = must({"log", path("store"), "--json"}).out;
  for (const Usage& usage : kUsages) {
    const auto words = split(usage.words);
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (!is_argument(words[i])) continue;
      Arguments empty = meant(words);
      empty[i] = "";
      const Result result = run(empty);
      EXPECT_EQ(result.status, 2) << usage.words << ", word " << i << ": " << result.err;
      EXPECT_NE(result.err.find(" is empty"), std::string::npos) << result.err;
      if (words[i] == "N" || words[i] == "M") continue;
      // Missing; a directory instead of a file or a store; a file instead of a store.
      for (const std::string& wrong : {path("nowhere"), path("directory"), path("file")}) {
        if (words[i] == "F" && wrong == path("file")) continue;
        Arguments arguments = meant(words);
        arguments[i] = wrong;
        const bool makes_a_store = words[0] == "backup" || words[0] == "import";
        if (words[i] == "S" && makes_a_store) continue;
        if (words[i] == "F" && words[0] == "restore" && wrong == path("nowhere")) continue;  // made
        const Result other = run(arguments);
        EXPECT_GE(other.status, 2) << usage.words << " with " << wrong;
        EXPECT_LE(other.status, 12) << usage.words << " with " << wrong;
        EXPECT_TRUE(other.err.starts_with("vellum: ")) << other.err;
        EXPECT_NE(other.err.find(wrong), std::string::npos) << usage.words << ": " << other.err;
      }
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path("new")));
  EXPECT_FALSE(std::filesystem::exists(path("nowhere")));
  EXPECT_EQ(must({"log", path("store"), "--json"}).out, before);
}

}  // namespace
}  // namespace vellum::cli_test
