// docs/reference/call-paths.md names functions that really call each other.
#include <regex>
#include <string>
#include <vector>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

std::string source_text(const std::string& name) {
  return read_file(std::string(VELLUM_SOURCE_DIR) + "/" + name);
}

// The offset of the bracket that closes the one at `at`; the end of the text if none does.
std::size_t closing(const std::string& text, std::size_t at, char open, char close) {
  for (int depth = 0; at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return at;
  }
  return text.size();
}

// The bodies of all functions of this name that the file defines. A declaration or a call ends with
// a semicolon before any brace.
std::string bodies_of(const std::string& text, const std::string& function) {
  std::string out;
  const std::regex name("[ \n*&]" + function + "\\(");
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
    const auto open = static_cast<std::size_t>(at->position() + at->length() - 1);
    const std::size_t body = text.find_first_of(";{", closing(text, open, '(', ')'));
    if (body == std::string::npos || text[body] == ';') continue;
    out += text.substr(body, closing(text, body, '{', '}') - body);
  }
  return out;
}

// Whether the text has a call of the function, without the names of its classes.
bool calls(const std::string& text, const std::string& function) {
  const std::string name = function.substr(function.rfind(':') + 1);
  return std::regex_search(text, std::regex("\\b" + name + "\\("));
}

struct Row {
  std::string function, body;
};

std::vector<Row> rows_of(const std::string& table) {
  const std::regex row(
      "\\| `([A-Za-z_:]+)` \\| \\[[a-z_.]+\\]\\(\\.\\./\\.\\./([a-z_./]+)\\) \\|\n");
  std::vector<Row> rows;
  for (std::sregex_iterator at(table.begin(), table.end(), row), end; at != end; ++at) {
    rows.push_back({(*at)[1], bodies_of(source_text((*at)[2]), (*at)[1])});
    EXPECT_FALSE(rows.back().body.empty()) << (*at)[1] << " in " << (*at)[2];
  }
  // No row is left out by its form: a table's other rows are its head and the line under it.
  const std::regex any("\n\\|"), rule("\n\\| ---");
  const auto count = [&](const std::regex& lines) {
    return std::distance(std::sregex_iterator(table.begin(), table.end(), lines), {});
  };
  EXPECT_EQ(count(any), static_cast<std::ptrdiff_t>(rows.size()) + 2 * count(rule));
  return rows;
}

// Names the functions that no function above them in the table calls.
std::vector<std::string> unreached(const std::vector<Row>& rows) {
  std::vector<std::string> out;
  std::string above;
  for (const Row& row : rows) {
    if (!above.empty() && !calls(above, row.function)) out.push_back(row.function);
    above += row.body;
  }
  return out;
}

// The sections of the page: a chain of calls each, and last "Where to look".
std::vector<std::string> sections() {
  const std::string page = source_text("docs/reference/call-paths.md");
  std::vector<std::string> out;
  for (std::size_t at = page.find("\n## "); at != std::string::npos;) {
    const std::size_t next = page.find("\n## ", at + 1);
    out.push_back(page.substr(at, next - at));
    at = next;
  }
  return out;
}

TEST(CallPaths, EachFunctionIsCalledByOneAboveIt) {
  ASSERT_EQ(sections().size(), 3u);
  for (const std::string& table : {sections()[0], sections()[1]}) {
    const auto rows = rows_of(table);
    EXPECT_GT(rows.size(), 20u);
    for (const std::string& function : unreached(rows)) ADD_FAILURE() << function;
  }
}

TEST(CallPaths, TheOtherTablesNameFunctionsOfTheirFiles) {
  EXPECT_GT(rows_of(sections().at(2)).size(), 30u);
}

// The test above the last would notice a step that is left out, from the commit's begin to its commit point.
TEST(CallPaths, AStepThatIsLeftOutIsNoticed) {
  const auto rows = rows_of(sections().at(0));
  std::size_t checked = 0;
  for (const char* const step :
       {"Region::Impl::commit_once", "Region::Impl::begin_commit", "Encoder::capture_slice",
        "Region::Impl::end_commit", "Region::Impl::write_commit", "BranchWriter::Commit::finish",
        "BranchWriter::Commit::Impl::append_to_journal"}) {
    auto less = rows;
    checked += std::erase_if(less, [&](const Row& row) { return row.function == step; });
    EXPECT_FALSE(unreached(less).empty()) << step;
  }
  EXPECT_EQ(checked, 7u);
}

}  // namespace
}  // namespace vellum::cli_test
