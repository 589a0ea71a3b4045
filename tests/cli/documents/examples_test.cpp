// The examples of the manual's pages are run.
#include <filesystem>
#include <regex>
#include <sstream>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

// The lines of a page's EXAMPLES as a user would type them.
std::vector<std::string> examples_of(const std::string& page) {
  const std::string text = read_file(std::string(VELLUM_SOURCE_DIR) + "/docs/man/" + page);
  const std::size_t begin = text.find(".SH EXAMPLES\n");
  if (begin == std::string::npos) return {};
  std::vector<std::string> examples;
  for (const std::string& line : lines_of(text.substr(begin + 13))) {
    if (line.starts_with(".SH")) break;
    if (line.starts_with(".") || line.starts_with("#")) continue;
    examples.push_back(std::regex_replace(line, std::regex(R"(\\-)"), "-"));
  }
  return examples;
}

TEST(ManualExamples, EveryManualPageOfACommandHasExamples) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(VELLUM_SOURCE_DIR) + "/docs/man")) {
    const std::string page = entry.path().filename().string();
    if (!page.ends_with(".1") || read_file(entry.path().string()).starts_with(".so ")) continue;
    EXPECT_FALSE(examples_of(page).empty()) << page;
  }
}

// Pages whose examples need only a store: no server, no mount, no other program.
class ManualExample : public CliTest, public testing::WithParamInterface<const char*> {
 protected:
  // The manual's directory /data: a store with a history, its remote, and other files.
  void make_data() const {
    const std::string first = noise(4, 1);
    file("monday.bin", first);
    file("graph.bin", noise(4, 2));
    file("app.db", noise(2, 3));
    const std::string store = path("s"), key = path("signer.pem");
    must({"init", store});
    ASSERT_EQ(run_program({"openssl", "genpkey", "-algorithm", "ed25519", "-out", key}).status, 0);
    ASSERT_EQ(
        run_program({"openssl", "pkey", "-in", key, "-pubout", "-out", path("signer.pub")}).status,
        0);
    must({"import", store, "main", path("monday.bin"), "--snapshot", "monday", "--sign-key", key});
    must({"import", store, "main", path("graph.bin"), "--snapshot", "tuesday", "--sign-key", key});
    must({"import", store, "main", file("now.bin", noise(5, 4)), "--snapshot", "now"});
    must({"branch", store, "trial", "tuesday"});
    must({"remote", "add", store, "origin", "file://" + path("origin")});
    must({"push", store, "--all"});
  }
};

TEST_P(ManualExample, Runs) {
  make_data();
  for (const std::string& example : examples_of(std::string("vellum-") + GetParam() + ".1")) {
    const std::string line = std::regex_replace(example, std::regex("/data/"), path("") + "/");
    const Result result = run_program(
        {"bash", "-c", "set -o pipefail; vellum() { " VELLUM_CLI " \"$@\"; }; " + line});
    const bool says_by_status =
        line.find(" diff ") != std::string::npos && line.find("--quiet") != std::string::npos;
    EXPECT_EQ(result.status, says_by_status ? 1 : 0) << example << "\n" << result.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Pages, ManualExample,
                         testing::Values("attach", "branch", "cat", "diff", "export", "forget",
                                         "gc", "help", "import", "init", "log", "pull", "recover",
                                         "remote", "repair", "restore", "rm", "show", "snapshot",
                                         "stat", "verify"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace vellum::cli_test
