// vellum run: every function of the C library that could bypass a live file is handled. Each name
// that the installed C library exports is either intercepted (src/run/exports.map) or listed with
// the reason why it is not (src/run/libc_calls.txt).
#include <fnmatch.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "run/elf_lib.hpp"
#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

using CallNames = std::set<std::string>;

using RunNamesNoSanitizer = CliTest;

// The libraries of this process.
std::string c_library() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        if (std::strstr(info->dlpi_name, "/libc.so") == nullptr) return 0;
        *static_cast<std::string*>(out) = info->dlpi_name;
        return 1;
      },
      &found);
  return found;
}

// exports.map: the names between "global:" and "local:".
CallNames taken_over() {
  std::string text = read_file(VELLUM_SOURCE_DIR "/src/run/exports.map");
  const std::size_t begin = text.find("global:") + 7;
  text = text.substr(begin, text.find("local:") - begin);
  std::replace(text.begin(), text.end(), ';', ' ');
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

struct Left {
  CallNames names, patterns;
};

// libc_calls.txt: sections of names; a section's head continues in indented lines.
Left left_alone() {
  Left out;
  std::ifstream in(VELLUM_SOURCE_DIR "/src/run/libc_calls.txt");
  bool patterns = false;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#' || line[0] == ' ') continue;
    if (line[0] == '[') {
      patterns = line.starts_with("[no-files]");
      continue;
    }
    std::istringstream words(line);
    for (std::string word; words >> word;)
      EXPECT_TRUE((patterns ? out.patterns : out.names).insert(word).second) << word << " twice";
  }
  return out;
}

bool is_in(const CallNames& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

TEST_F(RunNamesNoSanitizer, EachFunctionOfTheCLibraryIsInterceptedOrListedWithAReason) {
  const CallNames taken = taken_over(), exported = exported_names(c_library());
  const Left left = left_alone();
  ASSERT_GT(exported.size(), 2000u);
  for (const std::string& name : exported)
    EXPECT_TRUE(taken.contains(name) || left.names.contains(name) || is_in(left.patterns, name))
        << name << " is new, or forgotten: take it over, or say in libc_calls.txt why not";
  for (const std::string& name : taken) {
    if (name.starts_with("io_")) continue;  // of libaio and liburing
    EXPECT_TRUE(exported.contains(name)) << name << " is not a function of the C library";
    EXPECT_FALSE(left.names.contains(name)) << name << " is taken over, and said not to need it";
  }
  for (const std::string& name : left.names)
    EXPECT_TRUE(exported.contains(name)) << name << " is in libc_calls.txt, and nowhere else";
}

TEST_F(RunNamesNoSanitizer, TheLibraryExportsTheListedFunctions) {
  const CallNames exported = exported_names(VELLUM_BINARY_DIR "/lib/libvellum-run.so");
  for (const std::string& name : taken_over())
    EXPECT_TRUE(exported.contains(name)) << name << " is in exports.map, and not defined";
  EXPECT_EQ(taken_over(), exported);
}

// CallNames of system calls, as the kernel's headers have them.
CallNames system_calls() {
  CallNames out;
  std::ifstream in("/usr/include/x86_64-linux-gnu/asm/unistd_64.h");
  for (std::string define, name; in >> define;)
    if (define == "#define" && in >> name && name.starts_with("__NR_")) out.insert(name.substr(5));
  return out;
}

// A call by its number is the same call. Calls whose names differ in the C library are here under
// the kernel's name.
TEST_F(RunNamesNoSanitizer, InterceptedFunctionsAreAlsoInterceptedByNumber) {
  const std::string numbered = read_file(VELLUM_SOURCE_DIR "/src/run/calls/numbered_calls.cpp");
  const CallNames calls = system_calls();
  if (calls.empty()) GTEST_SKIP() << "no table of system calls here";
  CallNames taken = taken_over();
  taken.insert({"newfstatat", "exit_group", "openat2"});
  for (const std::string& name : taken)
    EXPECT_TRUE(!calls.contains(name) ||
                numbered.find("case SYS_" + name + ":") != std::string::npos)
        << name;
}

// Calls with another name, with other flags or with an older binary interface reach the same file.
TEST_F(RunNamesNoSanitizer, EveryCallOnAFileBehavesAsWithoutVellum) {
  for (const char* scenario :
       {"flags", "append", "faults", "old-stats", "names", "jobs", "received", "cut", "lengthened",
        "cut-by-link", "cut-while-read", "cut-by-number", "cut-by-opening", "cut-by-opening-so",
        "cut-by-stream", "added-to-table", "replaced-by-number", "linked-by-number",
        "ended-by-number"}) {
    const std::string data = path("data"), store = path("store");
    const Result plain = run_program({VELLUM_CALL_FAMILY, scenario, data});
    EXPECT_EQ(0, plain.status) << "without Vellum: " << scenario << ": " << plain.err;
    const std::string content = read_file(data);
    std::filesystem::remove(data);
    const Result result =
        run({"run", "--store", store, "--file", data, "--", VELLUM_CALL_FAMILY, scenario, data});
    EXPECT_EQ(0, result.status) << scenario << ": " << result.err;
    EXPECT_EQ(std::string::npos, result.err.find("changed around vellum")) << scenario;
    EXPECT_TRUE(content == read_file(data)) << scenario;
    must({"export", store, "main", path("exported")});
    EXPECT_TRUE(content == read_file(path("exported"))) << scenario << ": the version";
    std::filesystem::remove(path("exported"));
    std::filesystem::remove_all(store);
  }
}

}  // namespace
}  // namespace vellum::cli_test
