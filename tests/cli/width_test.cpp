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
                                        {"forget", store, "--keep-last", "1", "--dry-run"}};
  for (const Arguments& command : commands) {
    const Result result = run_on_screen(command, GetParam());
    EXPECT_EQ(result.status, 0) << result.err;
    auto lines = lines_of(result.out);
    // stat's sentences before its table, and du's after it, may continue on the next line.
    const auto between = std::find(lines.begin(), lines.end(), "");
    if (command[0] == "stat") lines.erase(lines.begin(), between);
    if (command[0] == "du") lines.erase(between, lines.end());
    EXPECT_GE(lines.size(), 2U) << command[0];
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
