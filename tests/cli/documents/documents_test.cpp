// The manual, the completions and the program have the same commands and options.
#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

std::string source(const std::string& name) {
  return read_file(std::string(VELLUM_SOURCE_DIR) + "/" + name);
}

// The commands of the help's groups, which are between the options and the last lines.
std::vector<std::string> commands() {
  const std::string help = must({"--help"}).out;
  const std::size_t begin = help.find("\nKeep versions:");
  std::vector<std::string> names;
  std::istringstream lines(help.substr(begin, help.find("\n\n--json") - begin));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ") || line.starts_with("   ")) continue;
    line = line.substr(2, line.find("  ", 2) - 2);
    names.push_back(line.substr(0, line.find(',')));
  }
  return names;
}

// Long options of a help text, except --help.
std::set<std::string> options_in(const std::string& help) {
  const std::regex option("--[a-z][a-z-]+");
  std::set<std::string> found;
  const std::string list = help.substr(0, help.find("\n\n--json"));
  for (std::sregex_iterator at(list.begin(), list.end(), option), end; at != end; ++at) {
    found.insert(at->str());
  }
  found.erase("--help");
  return found;
}

// In roff a minus sign is "\-".
std::string unescaped(std::string text) {
  std::size_t at = 0;
  while ((at = text.find("\\-", at)) != std::string::npos) {
    text.replace(at, 2, "-");
  }
  return text;
}

TEST(Documents, TheseAreTheCommands) {
  EXPECT_EQ(commands(),
            (std::vector<std::string>{
                "init",   "snapshot",  "branch", "rm",      "forget",  "log",    "show",  "diff",
                "heat",   "blame",     "cat",    "prove",   "web",     "run",    "mount", "import",
                "export", "attach",    "backup", "restore", "recover", "remote", "push",  "pull",
                "clone",  "replicate", "group",  "stat",    "du",      "gc",     "tier",  "key",
                "verify", "repair",    "top",    "help"}));
}

TEST(Documents, EveryCommandAndOptionIsInTheManual) {
  const std::string overview = unescaped(source("docs/man/vellum.1"));
  for (const std::string& option : options_in(must({"--help"}).out)) {
    EXPECT_NE(overview.find(option), std::string::npos) << option;
  }
  for (const std::string& command : commands()) {
    EXPECT_NE(overview.find("vellum-" + command), std::string::npos) << command;
    const std::string page = unescaped(source("docs/man/vellum-" + command + ".1"));
    const auto options = options_in(must({command, "--help"}).out);
    for (const std::string& option : options) {
      EXPECT_NE(page.find(option), std::string::npos) << command << " " << option;
    }
  }
}

TEST(Documents, EveryCommandAndOptionIsInTheCompletions) {
  for (const char* file : {"completions/vellum.bash", "completions/_vellum"}) {
    const std::string text = source(file);
    for (const std::string& command : commands()) {
      EXPECT_NE(text.find(command), std::string::npos) << file << " " << command;
      for (const std::string& option : options_in(must({command, "--help"}).out)) {
        EXPECT_NE(text.find(option), std::string::npos) << file << " " << command << " " << option;
      }
    }
  }
}

TEST(Documents, EveryCommandAndOptionIsInFishsCompletion) {
  const std::string text = source("completions/vellum.fish");
  for (const std::string& command : commands()) {
    EXPECT_NE(text.find(" -a " + command + " "), std::string::npos) << command;
    for (const std::string& option : options_in(must({command, "--help"}).out))
      EXPECT_NE(text.find(" -l " + option.substr(2) + " "), std::string::npos)
          << command << " " << option;
  }
}

TEST(Documents, FishCompletionCompletes) {
  if (run_program({"fish", "--version"}).status != 0) GTEST_SKIP() << "no fish here";
  const auto complete = [](const std::string& words) {
    return run_program({"fish", "--no-config", "-c",
                        "source " + std::string(VELLUM_SOURCE_DIR) +
                            "/completions/vellum.fish; complete -C '" + words + "'"});
  };
  EXPECT_TRUE(contains(complete("vellum ver").out, "verify")) << complete("vellum ver").err;
  EXPECT_TRUE(contains(complete("vellum --json sn").out, "snapshot"));
  EXPECT_TRUE(contains(complete("vellum verify --r").out, "--read-data"));
  EXPECT_TRUE(contains(complete("vellum init --compression l").out, "lz4"));
}

TEST(Documents, HelpOfRunShowsThePositionOfTheProgram) {
  EXPECT_TRUE(contains(must({"run", "--help"}).out, "vellum run [OPTIONS] -- PROGRAM"));
  EXPECT_TRUE(contains(must({"help", "run"}).out, "vellum run [OPTIONS] -- PROGRAM"));
}

TEST(Documents, EveryOptionOfTierIsInTheManualAndTheCompletions) {
  for (const char* action : {"list", "add", "remove", "limit", "move", "apply"}) {
    for (const std::string& option : options_in(must({"tier", action, "--help"}).out)) {
      for (const char* file :
           {"docs/man/vellum-tier.1", "completions/vellum.bash", "completions/_vellum"}) {
        EXPECT_NE(unescaped(source(file)).find(option), std::string::npos) << file << " " << option;
      }
    }
    EXPECT_NE(source("docs/man/vellum-tier.1").find(action), std::string::npos) << action;
  }
}

TEST(Documents, EveryOptionOfKeyIsInTheManualAndTheCompletions) {
  for (const char* action : {"list", "add", "remove", "rotate"}) {
    for (const std::string& option : options_in(must({"key", action, "--help"}).out)) {
      for (const char* file :
           {"docs/man/vellum-key.1", "completions/vellum.bash", "completions/_vellum"}) {
        EXPECT_NE(unescaped(source(file)).find(option), std::string::npos) << file << " " << option;
      }
    }
    EXPECT_NE(source("docs/man/vellum-key.1").find(action), std::string::npos) << action;
  }
}

TEST(Documents, EveryOptionOfGroupIsInTheManualAndTheCompletions) {
  for (const char* action : {"log", "show", "verify", "export", "restore", "rm", "gc"}) {
    for (const std::string& option : options_in(must({"group", action, "--help"}).out)) {
      for (const char* file :
           {"docs/man/vellum-group.1", "completions/vellum.bash", "completions/_vellum"}) {
        EXPECT_NE(unescaped(source(file)).find(option), std::string::npos) << file << " " << option;
      }
    }
    EXPECT_NE(source("docs/man/vellum-group.1").find(action), std::string::npos) << action;
  }
}

TEST(Documents, EveryOptionOfRemoteIsInTheManualAndTheCompletions) {
  for (const char* action : {"list", "add", "remove"}) {
    for (const std::string& option : options_in(must({"remote", action, "--help"}).out)) {
      for (const char* file :
           {"docs/man/vellum-remote.1", "completions/vellum.bash", "completions/_vellum"}) {
        EXPECT_NE(unescaped(source(file)).find(option), std::string::npos) << file << " " << option;
      }
    }
    EXPECT_NE(source("docs/man/vellum-remote.1").find(action), std::string::npos) << action;
  }
}

TEST(Documents, ManualAndReferenceGiveTheSameExitStatuses) {
  const std::string manual = source("docs/man/vellum.1");
  const std::string reference = source("docs/reference/exit-status.md");
  for (int status = 0; status <= 14; ++status) {
    const std::string number = std::to_string(status);
    EXPECT_NE(manual.find("\n.B " + number + "\n"), std::string::npos) << number;
    EXPECT_NE(reference.find("\n| " + number + " |"), std::string::npos) << number;
  }
}

TEST(Documents, VersionIsTheProjects) {
  std::smatch version;
  const std::string cmake = source("CMakeLists.txt");
  ASSERT_TRUE(std::regex_search(cmake, version, std::regex("project\\(Vellum VERSION ([0-9.]+)")));
  EXPECT_EQ(must({"--version"}).out, "vellum " + version[1].str() + "\n");
}

TEST(Documents, ManualPagesAreValidRoff) {
  if (run_program({"groff", "-v"}).status != 0) {
    GTEST_SKIP() << "no groff here";
  }
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(VELLUM_SOURCE_DIR) + "/docs/man")) {
    if (read_file(entry.path().string()).starts_with(".so ")) {
      continue;  // refers to another page by the name that it has when installed
    }
    const Result result =
        run_program({"groff", "-man", "-ww", "-Tutf8", "-rF0", entry.path().string()});
    EXPECT_EQ(result.status, 0) << entry.path();
    EXPECT_EQ(result.err, "") << entry.path();
  }
}

TEST(Documents, BashCompletionCompletes) {
  if (run_program({"bash", "--version"}).status != 0) {
    GTEST_SKIP() << "no bash here";
  }
  const auto complete = [](const std::string& words) {
    const std::string file = std::string(VELLUM_SOURCE_DIR) + "/completions/vellum.bash";
    return run_program({"bash", "-c",
                        ". \"$0\"; vellum() { " VELLUM_CLI " \"$@\"; }; COMP_WORDS=(" + words +
                            "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE=\"" + words +
                            "\"; COMP_POINT=${#COMP_LINE}; _vellum; echo \"${COMPREPLY[*]}\"",
                        file});
  };
  EXPECT_EQ(complete("vellum ver").out, "verify\n") << complete("vellum ver").err;
  EXPECT_EQ(complete("vellum --json sn").out, "snapshot\n");
  EXPECT_EQ(complete("vellum verify --r").out, "--read-data\n");
  EXPECT_EQ(complete("vellum init --compression l").out, "lz4\n");
  EXPECT_EQ(complete("vellum tier ap").out, "apply\n");
  EXPECT_EQ(complete("vellum group ex").out, "export\n");
}

class Completion : public CliTest {};

TEST_F(Completion, BashKnowsTheVersionsOfTheStore) {
  if (run_program({"bash", "--version"}).status != 0) {
    GTEST_SKIP() << "no bash here";
  }
  const std::string s = make_store_with({noise(1, 1), noise(1, 2)});
  const Result result =
      run_program({"bash", "-c",
                   ". \"$0\"; vellum() { " VELLUM_CLI
                   " \"$@\"; }; COMP_WORDS=(vellum show \"$1\" v); COMP_CWORD=3; _vellum; "
                   "echo \"${COMPREPLY[*]}\"",
                   std::string(VELLUM_SOURCE_DIR) + "/completions/vellum.bash", s});
  EXPECT_EQ(result.out, "v2 v1\n") << result.err;
}

}  // namespace
}  // namespace vellum::cli_test
