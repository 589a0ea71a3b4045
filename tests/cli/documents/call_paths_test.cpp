// docs/reference/call-paths.md names functions that are in the files given for them.
#include <regex>
#include <string>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

std::string source_text(const std::string& name) {
  return read_file(std::string(VELLUM_SOURCE_DIR) + "/" + name);
}

// Whether a body follows the name: a declaration or a call ends with a semicolon before any brace.
bool defines(const std::string& text, const std::string& function) {
  const std::regex definition("[ \n*&]" + function + "\\([^;]*\\{");
  return std::regex_search(text, definition);
}

TEST(CallPaths, EachFunctionIsInItsFile) {
  const std::string page = source_text("docs/reference/call-paths.md");
  const std::regex row(
      "\\| `([A-Za-z_:]+)` \\| \\[[a-z_.]+\\]\\(\\.\\./\\.\\./([a-z_./]+)\\) \\|\n");
  int rows = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at, ++rows) {
    EXPECT_TRUE(defines(source_text((*at)[2]), (*at)[1])) << (*at)[1] << " in " << (*at)[2];
  }
  EXPECT_GT(rows, 40);
  // No row is skipped because of its form: a table's other rows are its head and the line under it.
  const std::regex any("\n\\|");
  EXPECT_EQ(std::distance(std::sregex_iterator(page.begin(), page.end(), any), {}), rows + 4);
}

}  // namespace
}  // namespace vellum::cli_test
