// Tables and drawings fit the terminal's width; files and pipes get all columns.
#include <algorithm>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

std::size_t columns_of(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0u) != 0x80;
  }));
}

class Width : public CliTest, public testing::WithParamInterface<unsigned short> {
 protected:
  // Three snapshots with long names and messages.
  std::string make_wide_store() const {
    const std::string store = make_store();
    for (unsigned i = 1; i <= 3; ++i) {
      const std::string number = std::to_string(i);
      must({"import", store, "main", file("content", noise(8, i)), "--snapshot",
            "a-name-that-says-what-the-version-is-" + number, "--message",
            "the training run of that night, with a learning rate of 0.0003 and batches of 64"});
    }
    return store;
  }
};

TEST_P(Width, NoLineIsWiderThanTheTerminal) {
  const std::string store = make_wide_store();
  const std::string last = "a-name-that-says-what-the-version-is-3";
  const std::vector<Arguments> commands{{"log", store},
                                        {"log", store, "--graph"},
                                        {"snapshot", store},
                                        {"heat", store},
                                        {"diff", store, last + "~", last, "--stat"},
                                        {"blame", store},
                                        {"stat", store},
                                        {"du", store},
                                        {"show", store, last},
                                        {"verify", store},
                                        {"diff", store, last + "~", last, "--summary"},
                                        {"forget", store, "--keep-last", "1", "--dry-run"}};
  for (const Arguments& command : commands) {
    const Result result = run_on_screen(command, GetParam());
    EXPECT_EQ(result.status, 0) << result.err;
    const auto lines = lines_of(result.out);
    EXPECT_GE(lines.size(), 1U) << command[0];
    for (const std::string& line : lines)
      EXPECT_LE(columns_of(line), GetParam()) << command[0] << ": " << line;
  }
}

TEST_P(Width, AShortenedNameKeepsItsBeginning) {
  for (const std::string& line :
       lines_of(run_on_screen({"log", make_wide_store()}, GetParam()).out))
    EXPECT_TRUE(line.starts_with("version") || line.starts_with("main") ||
                line.starts_with("a-name-that"))
        << line;
}

// The names of the commands in a help text; none for a command without commands.
std::vector<std::string> commands_listed(const std::string& help) {
  std::vector<std::string> names;
  bool is_list = false;
  for (const std::string& line : lines_of(help)) {
    if (!line.starts_with(' ')) is_list = line != "Options:" && line != "Positionals:";
    if (is_list && line.starts_with("  ") && line.size() > 2 && std::islower(line[2]) != 0)
      names.push_back(line.substr(2, line.find_first_of(" ,", 2) - 2));
  }
  return names;
}

// Every command's help, and the program's own.
std::vector<Arguments> all_helps() {
  std::vector<Arguments> helps{{"--help"}};
  for (const std::string& command : commands_listed(must({"--help"}).out)) {
    helps.push_back({command, "--help"});
    for (const std::string& inner : commands_listed(must({command, "--help"}).out))
      helps.push_back({command, inner, "--help"});
  }
  return helps;
}

TEST_P(Width, NoLineOfAHelpIsWiderThanTheTerminal) {
  const std::string description(31, ' ');
  const auto helps = all_helps();
  EXPECT_GE(helps.size(), 50U);
  for (const Arguments& arguments : helps) {
    const auto lines = lines_of(run_on_screen(arguments, GetParam()).out);
    bool is_options = false;
    for (const std::string& line : lines) {
      EXPECT_LE(columns_of(line), GetParam()) << arguments[0] << ": " << line;
      if (!line.starts_with(' ')) is_options = line == "Options:";
      const bool continues = is_options && !line.starts_with("  -") && line != "Options:";
      EXPECT_TRUE(!continues || line.starts_with(description)) << arguments[0] << ": " << line;
    }
  }
}

TEST_F(CliTest, AHelpInAPipeHasAtMost80Columns) {
  for (const Arguments& arguments : all_helps())
    for (const std::string& line : lines_of(must(arguments).out))
      EXPECT_LE(columns_of(line), 80U) << arguments[0] << ": " << line;
}

// gc says on standard error why it frees nothing.
TEST_P(Width, SentencesContinueOnTheNextLine) {
  const std::string store = make_wide_store();
  std::string text = run_on_terminal({"gc", store, "--no-progress"}, GetParam()).err;
  std::erase(text, '\r');
  for (const std::string& line : lines_of(text)) EXPECT_LE(columns_of(line), GetParam()) << line;
  std::replace(text.begin(), text.end(), '\n', ' ');
  EXPECT_TRUE(contains(text, "snapshots and 1 branch; vellum forget and vellum rm")) << text;
}

INSTANTIATE_TEST_SUITE_P(Columns, Width, testing::Values(60, 80, 120),
                         [](const auto& info) { return std::to_string(info.param); });

TEST_F(CliTest, APipeGetsAllColumns) {
  const std::string store = make_store_with({noise(1, 1)});
  const std::string head = lines_of(must({"log", store}).out)[0];
  for (const char* column :
       {"version", "kind", "time", "commit", "size", "changed pages", "added", "message"})
    EXPECT_TRUE(contains(head, column)) << head;
}

}  // namespace
}  // namespace vellum::cli_test
