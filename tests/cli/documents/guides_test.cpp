// The commands of a guide are run, in the order of the page, and print what the page shows.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <regex>
#include <sstream>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

const std::string kTypedPassphrase = "correct horse battery staple";

// A block of commands, and what they print; the page may leave that out.
struct GuideStep {
  std::string commands;
  std::string shown;
  bool is_shown = false;
};

// A block of another language, and a section, end the search for what commands print.
std::vector<GuideStep> steps_of_guide(const std::string& text) {
  std::vector<GuideStep> steps;
  std::string fence;
  bool may_show = false;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("```")) {
      const bool opens = fence.empty();
      fence = opens ? line : "";
      if (!opens) continue;
      if (fence == "```sh") {
        steps.emplace_back();
      } else if (fence == "```text" && may_show) {
        steps.back().is_shown = true;
      }
      may_show = fence == "```sh";
    } else if (fence == "```sh") {
      steps.back().commands += line + "\n";
    } else if (fence == "```text" && !steps.empty() && steps.back().is_shown) {
      steps.back().shown += line + "\n";
    } else if (line.starts_with("#")) {
      may_show = false;
    }
  }
  return steps;
}

// Without what differs from run to run.
std::string without_chance(std::string text) {
  text = std::regex_replace(text, std::regex("[0-9.]+ (B|KiB|MiB)\\b"), "SIZE");
  return std::regex_replace(text, std::regex("\\b[0-9a-f]{32}\\b"), "FINGERPRINT");
}

// Runs the script on a terminal of its own, whose user types the passphrase when asked. Returns the
// exit status.
int run_with_a_person(const std::string& script, const std::string& home) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    ::setenv("HOME", home.c_str(), 1);
    become_program({"bash", script});
  }
  std::string shown;
  for (char next = 0; ::read(terminal, &next, 1) == 1;) {
    shown += next;
    if (!shown.ends_with(": ")) continue;
    const std::string typed = kTypedPassphrase + '\n';
    EXPECT_EQ(::write(terminal, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
    shown.clear();
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(terminal);
  EXPECT_FALSE(contains(shown, kTypedPassphrase));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class Guide : public CliTest {
 protected:
  std::string output_of(std::size_t step) const { return path("out" + std::to_string(step)); }
  // The page's directories are in the test's own.
  std::string here(const std::string& text) const {
    return std::regex_replace(text, std::regex("(^|[ (]|file://)/(data|backup)/"),
                              "$1" + path("") + "$2/");
  }
  std::string script_of(const std::vector<GuideStep>& steps) const {
    std::string script = "set -eo pipefail\nvellum() { " VELLUM_CLI " \"$@\"; }\n";
    for (std::size_t i = 0; i < steps.size(); ++i) {
      script += "{\n" + here(steps[i].commands) + "} >" + output_of(i) + " 2>&1\n";
    }
    return file("script", script);
  }
  void expect_as_shown(const std::vector<GuideStep>& steps) const {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!std::filesystem::exists(output_of(i))) break;
      std::string printed = read_file(output_of(i));
      for (std::size_t at = 0; (at = printed.find(path(""), at)) != std::string::npos;) {
        printed.replace(at, path("").size(), "/");
      }
      if (steps[i].is_shown) {
        EXPECT_EQ(without_chance(printed), without_chance(steps[i].shown)) << steps[i].commands;
      } else {
        EXPECT_EQ(printed, "") << steps[i].commands;
      }
    }
  }
};

TEST_F(Guide, KeysRunsAsItSays) {
  auto steps = steps_of_guide(read_file(std::string(VELLUM_SOURCE_DIR) + "/docs/guides/keys.md"));
  ASSERT_GT(steps.size(), 6u);
  if (run_program({"age-keygen", "--version"}).status != 0) {
    std::erase_if(steps,
                  [](const GuideStep& step) { return contains(step.commands, "age-keygen"); });
  }
  for (const char* directory : {"data", "backup", "home", "home/secret-service"}) {
    std::filesystem::create_directory(path(directory));
  }
  file("home/notes.db", noise(2, 1));
  std::filesystem::copy_file(std::string(VELLUM_SOURCE_DIR) + "/examples/check_proof.py",
                             path("home/check_proof.py"));
  file("home/other.key", noise(1, 2).substr(0, 32));
  file("home/server.passphrase", "of the server\n");
  file("home/secret-service/new", "of the server\n");
  file("home/secret-service/vellum", "from a service\n");
  EXPECT_EQ(run_with_a_person(script_of(steps), path("home")), 0);
  expect_as_shown(steps);
}

}  // namespace
}  // namespace vellum::cli_test
