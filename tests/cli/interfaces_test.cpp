// docs/reference/interfaces.md names what the headers and the program have, all of it and nothing
// else.
#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "cli/run_lib.hpp"

namespace vellum::cli_test {
namespace {

using NameSet = std::set<std::string>;

std::string text_of(const std::string& name) {
  return read_file(std::string(VELLUM_SOURCE_DIR) + "/" + name);
}

NameSet matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  NameSet found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.insert((*at)[1].str());
  }
  return found;
}

// "Store::open" and so on: functions of the public part, which stand two columns in.
NameSet members_of(const std::string& class_name, const std::string& header) {
  const std::string text = text_of(header);
  const std::size_t begin = text.find("\nclass " + class_name + " {");
  EXPECT_NE(begin, std::string::npos) << class_name;
  const std::string body = text.substr(begin, text.find("\n private:", begin) - begin);
  NameSet out;
  for (const std::string& name : matches(
           body, "\n  (?:[A-Za-z_][^()\n/~]* |\\[\\[nodiscard\\]\\] [^()\n/~]* )?([a-z_]+)\\(")) {
    out.insert(class_name + "::" + name);
  }
  return out;
}

NameSet members() {
  NameSet out = members_of("Store", "include/vellum/store.hpp");
  out.merge(members_of("Region", "include/vellum/region.hpp"));
  return out;
}

NameSet functions_of_c() {
  return matches(text_of("include/vellum/vellum.h"), "\\b(vellum_[a-z0-9_]+)\\(");
}

// What stands under "Commands:" or "Subcommands:" of a help text, without its other names.
NameSet commands_in(const std::string& help) {
  NameSet names;
  std::istringstream lines(help.substr(help.find("ommands:\n") + 9));
  for (std::string line; std::getline(lines, line) && line.starts_with("  ");) {
    line = line.substr(2, line.find("  ", 2) - 2);
    names.insert(line.substr(0, line.find(',')));
  }
  return names;
}

NameSet commands_of_the_program() {
  NameSet out;
  for (const std::string& name : commands_in(must({"--help"}).out)) {
    if (name != "tier") out.insert(name);
  }
  for (const std::string& name : commands_in(must({"tier", "--help"}).out)) {
    out.insert("tier " + name);
  }
  return out;
}

std::string table() { return text_of("docs/reference/interfaces.md"); }

TEST(Interfaces, TheTableHasEachMemberOfStoreAndRegion) {
  const NameSet found = members();
  EXPECT_GT(found.size(), 50u);  // else the headers are read wrongly
  EXPECT_EQ(matches(table(), "`((?:Store|Region)::[a-z_]+)`"), found);
}

TEST(Interfaces, TheTableHasEachFunctionOfC) {
  const NameSet found = functions_of_c();
  EXPECT_GT(found.size(), 50u);
  EXPECT_EQ(matches(table(), "`(vellum_[a-z0-9_]+)`"), found);
}

TEST(Interfaces, TheTableHasEachCommand) {
  const NameSet found = commands_of_the_program();
  EXPECT_GT(found.size(), 20u);
  EXPECT_EQ(matches(table(), "`vellum ([a-z][a-z ]*)`"), found);
}

TEST(Interfaces, EachRowHasFourCells) {
  std::istringstream lines(table());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("|")) {
      EXPECT_EQ(std::count(line.begin(), line.end(), '|'), 5) << line;
    }
  }
}

}  // namespace
}  // namespace vellum::cli_test
