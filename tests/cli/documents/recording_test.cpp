// docs/recordings: the recorded output is the program's current output.
#include <regex>
#include <sstream>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

const std::string kSource = VELLUM_SOURCE_DIR;

// The terminal's content, without the parts that depend on the clock and the machine.
std::string shown(const std::string& cast) {
  std::string text;
  std::istringstream lines(cast);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line).at("version"), 2);
  double last = 0;
  while (std::getline(lines, line)) {
    const auto event = nlohmann::json::parse(line);
    EXPECT_GE(event.at(0).get<double>(), last);
    last = event.at(0);
    EXPECT_EQ(event.at(1), "o");
    text += event.at(2).get<std::string>();
  }
  text = std::regex_replace(text, std::regex("[^\\r\\n]*\\x1b\\[K\\r\\x1b\\[K"), "");  // progress
  text = std::regex_replace(text, std::regex("[0-9]{4}-[0-9-]+T[0-9:.]+Z"), "TIME");
  text = std::regex_replace(text, std::regex("line [0-9]+: +[0-9]+ Killed"), "Killed");
  text = std::regex_replace(text, std::regex("/[^ ]*/bank.db"), "DIRECTORY/bank.db");
  text = std::regex_replace(text, std::regex("[0-9.]+ (B|KiB|MiB|bytes\\))"), "SIZE");
  text = std::regex_replace(text, std::regex("[ \\r]+"), " ");  // as wide as the sizes
  return std::regex_replace(text, std::regex("\\n "), "\n");
}

class Recording : public CliTest {};

// Records the script again, and compares it with the recording in the documents.
void expect_as_recorded(const std::string& name, const std::string& cast) {
  const std::string script = kSource + "/docs/recordings/" + name + ".txt";
  const Result result = run_program({"python3", kSource + "/tools/record-terminal.py", script, cast,
                                     std::filesystem::path(VELLUM_CLI).parent_path().string()});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string now = shown(read_file(cast));
  for (const std::string& command : lines_of(read_file(script)))
    EXPECT_TRUE(contains(now, std::regex_replace(command, std::regex(" +"), " ") + " \n"))
        << command;
  EXPECT_EQ(now, shown(read_file(kSource + "/docs/recordings/" + name + ".cast")))
      << "make it again: tools/record-terminal.py docs/recordings/" << name
      << ".txt docs/recordings/" << name << ".cast";
}

TEST_F(Recording, TheTourMatchesTheOutputOfTheCommands) {
  if (run_program({"python3", "--version"}).status != 0) GTEST_SKIP() << "no python3 here";
  expect_as_recorded("tour", path("tour.cast"));
}

TEST_F(Recording, TheKilledProgramsMatchTheOutputOfTheCommands) {
  for (const char* program : {"python3", "sqlite3"})
    if (run_program({program, "--version"}).status != 0) GTEST_SKIP() << "no " << program;
  expect_as_recorded("killed", path("killed.cast"));
}

TEST_F(Recording, AFailingCommandEndsTheRecording) {
  if (run_program({"python3", "--version"}).status != 0) GTEST_SKIP() << "no python3 here";
  const Result result = run_program({"python3", kSource + "/tools/record-terminal.py",
                                     file("script", "vellum log nowhere\n"), path("out"),
                                     std::filesystem::path(VELLUM_CLI).parent_path().string()});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "exit status 3")) << result.err;
}

}  // namespace
}  // namespace vellum::cli_test
