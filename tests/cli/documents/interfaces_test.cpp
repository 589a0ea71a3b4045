// docs/reference/interfaces.md lists exactly the functions, options and commands of the headers and
// the program.
#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "run/run_lib.hpp"

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

// "Store::open" and so on: functions of the public part, which are indented by two columns.
NameSet members_of(const std::string& class_name, const std::string& header) {
  const std::string text = text_of(header);
  std::size_t begin = text.find("\nclass " + class_name + " {");
  if (begin == std::string::npos) begin = text.find("\nclass [[nodiscard]] " + class_name + " {");
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
  out.merge(members_of("Transaction", "include/vellum/region.hpp"));
  out.merge(members_of("Group", "include/vellum/mpi.hpp"));
  out.merge(members_of("GroupVersion", "include/vellum/group.hpp"));
  return out;
}

// The fields of a struct, which are indented by two columns, one or more per line.
NameSet fields_of(const std::string& text, const std::string& begin, const std::string& prefix) {
  const std::size_t at = text.find(begin);
  EXPECT_NE(at, std::string::npos) << begin;
  const std::string body = text.substr(at, text.find("\n}", at) - at);
  NameSet out;
  for (const std::string& names :
       matches(std::regex_replace(body, std::regex("//[^\n]*|/\\*[^*]*\\*/| = [^,;]*|\\{0\\}"), ""),
               "\n  (?!enum|size_t)[A-Za-z0-9_:<> *]*[ *>] ?((?:[a-z_]+, )*[a-z_]+);")) {
    for (const std::string& name : matches(names, "([a-z_]+)")) out.insert(prefix + name);
  }
  return out;
}

struct OptionStruct {
  const char* name;
  const char* header;
  const char* c_name;  // empty: its fields are another struct's in C
};
constexpr OptionStruct kOptionStructs[] = {
    {"StoreOptions", "store.hpp", "vellum_store_options"},
    {"RemoteOptions", "remote_options.hpp", "vellum_remote_options"},
    {"Encoding", "encoding.hpp", "vellum_encoding"},
    {"RegionOptions", "region_options.hpp", "vellum_region_options"},
    {"ImageOptions", "mapped.hpp", ""},
    {"GcOptions", "store.hpp", "vellum_gc_options"},
    {"VerifyOptions", "store.hpp", "vellum_verify_options"},
    {"RepairOptions", "store.hpp", "vellum_repair_options"},
    {"TierMove", "tier.hpp", "vellum_tier_move"},
    {"ApplyTiersOptions", "store.hpp", "vellum_apply_tiers_options"},
    {"AddRemoteOptions", "remote.hpp", "vellum_add_remote_options"},
    {"PushOptions", "remote.hpp", "vellum_push_options"},
    {"ReplicateOptions", "remote.hpp", "vellum_replicate_options"},
    {"PullOptions", "remote.hpp", "vellum_pull_options"},
    {"CloneOptions", "remote.hpp", ""},
    {"RetentionPolicy", "retention.hpp", "vellum_retention_policy"},
    {"GroupOptions", "mpi.hpp", "vellum_group_options"},
};

NameSet fields_of_cpp() {
  NameSet out;
  for (const OptionStruct& options : kOptionStructs) {
    const std::string name = options.name;
    out.merge(fields_of(text_of("include/vellum/" + std::string(options.header)),
                        "\nstruct " + name + " {", name + "::"));
  }
  return out;
}

NameSet fields_of_c() {
  NameSet out;
  for (const OptionStruct& options : kOptionStructs) {
    const std::string name = options.c_name;
    if (name.empty()) continue;
    out.merge(fields_of(text_of("include/vellum/vellum.h") + text_of("include/vellum/mpi.h"),
                        "\ntypedef struct " + name + " {", name + "."));
  }
  return out;
}

NameSet functions_of_c() {
  return matches(text_of("include/vellum/vellum.h") + text_of("include/vellum/mpi.h"),
                 "\\b(vellum_[a-z0-9_]+)\\(");
}

// The names at the start of lines in a help's lists of commands, which follow its options.
NameSet commands_in(const std::string& help) {
  NameSet names;
  std::istringstream lines(help.substr(help.find("\n\n", help.find("Options:"))));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ") || line.starts_with("   ")) continue;
    line = line.substr(2, line.find("  ", 2) - 2);
    names.insert(line.substr(0, line.find(',')));
  }
  return names;
}

NameSet commands_of_the_program() {
  const NameSet with_subcommands{"tier", "key", "group", "remote"};
  NameSet out;
  for (const std::string& name : commands_in(must({"--help"}).out)) {
    if (!with_subcommands.contains(name)) out.insert(name);
  }
  for (const std::string& command : with_subcommands) {
    for (const std::string& name : commands_in(must({command, "--help"}).out)) {
      out.insert(command + " " + name);
    }
  }
  return out;
}

std::string table() { return text_of("docs/reference/interfaces.md"); }

TEST(Interfaces, TheTableHasEachMemberOfStoreAndRegion) {
  const NameSet found = members();
  EXPECT_GT(found.size(), 50u);  // otherwise the headers are parsed wrongly
  EXPECT_EQ(matches(table(), "`((?:Store|Region|Transaction|Group|GroupVersion)::[a-z_]+)`"),
            found);
}

TEST(Interfaces, TheTableHasEachFunctionOfC) {
  const NameSet found = functions_of_c();
  EXPECT_GT(found.size(), 50u);
  EXPECT_EQ(matches(table(), "`(vellum_[a-z0-9_]+)`"), found);
}

TEST(Interfaces, TheTableHasEachCommand) {
  const NameSet found = commands_of_the_program();
  EXPECT_GT(found.size(), 20u);
  EXPECT_EQ(matches(table(), "`vellum ([a-z]+(?: [a-z][a-z-]*)?)`"), found);
}

TEST(Interfaces, TheTableHasEachOptionOfCpp) {
  const NameSet found = fields_of_cpp();
  EXPECT_GT(found.size(), 40u);
  EXPECT_EQ(matches(table(),
                    "`([A-Z][A-Za-z]*(?:Options|Policy)::[a-z_]+|"
                    "Encoding::[a-z_]+|TierMove::[a-z_]+)`"),
            found);
}

TEST(Interfaces, TheTableHasEachOptionOfC) {
  const NameSet found = fields_of_c();
  EXPECT_GT(found.size(), 40u);
  EXPECT_EQ(matches(table(), "`(vellum_[a-z_]+\\.[a-z_]+)`"), found);
}

TEST(Interfaces, EachOptionOfACommandExists) {
  const NameSet named = matches(table(), "`((?!vellum )[a-z][a-z ]* --[a-z-]+)`");
  EXPECT_GT(named.size(), 30u);
  for (const std::string& name : named) {
    const std::size_t dashes = name.find(" --");
    std::vector<std::string> command;
    std::istringstream words(name.substr(0, dashes));
    for (std::string word; words >> word;) command.push_back(word);
    command.emplace_back("--help");
    const NameSet options = matches(must(command).out, "(--[a-z-]+)");
    EXPECT_TRUE(options.contains(name.substr(dashes + 1))) << name;
  }
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
