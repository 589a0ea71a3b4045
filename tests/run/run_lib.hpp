// Runs the program `vellum` and checks its output.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/types.h>
#include <nlohmann/json.hpp>

namespace vellum::cli_test {

struct Result {
  int status = -1;  // exit status; -1 when a signal ended it
  int signal = 0;
  std::string out;
  std::string err;

  // Standard output as the one JSON object that it has to be.
  nlohmann::json json() const;
};

using Arguments = std::vector<std::string>;

// The exit status when there is no such program, or it may not be run.
inline constexpr int kExecFailed = 127;

// The child calls this before it becomes the program; it must not allocate.
using InChild = std::function<void()>;

Result run(const Arguments& arguments, const InChild& in_child = nullptr);
// In a child that the test has forked itself: becomes `vellum` with these arguments, or any
// program.
[[noreturn]] void become_vellum(const Arguments& arguments);
[[noreturn]] void become_program(const Arguments& argv);
// The first child of a process: the program that `vellum run` has started.
pid_t child_of(pid_t parent);
// Any program; argv[0] is searched in PATH.
Result run_program(const Arguments& argv, const InChild& in_child = nullptr);
// With standard error on a pseudo-terminal; `err` is what the terminal got. 0 columns: unknown.
Result run_on_terminal(const Arguments& arguments, unsigned short columns = 0);
// With standard output on a pseudo-terminal of this width, under a locale with UTF-8.
Result run_on_screen(const Arguments& arguments, unsigned short columns);

void write_file(const std::string& path, const std::string& content);
std::string read_file(const std::string& path);
// `pages` pages that do not compress and differ from those of another seed.
std::string noise(std::size_t pages, unsigned seed);

bool contains(const std::string& text, const std::string& part);
std::vector<std::string> lines_of(const std::string& text);

// A test with its own directory.
class CliTest : public testing::Test {
 protected:
  CliTest();
  ~CliTest() override;

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  // The path of a new file with this content.
  std::string file(const std::string& name, const std::string& content) const;
  // A store, by default empty.
  std::string make_store(const Arguments& options = {}) const;
  // A store whose branch main went through `contents`, each kept as snapshot v1, v2, ...
  std::string make_store_with(const std::vector<std::string>& contents,
                              const Arguments& options = {}) const;
  // The only pack with content.
  static std::string pack_of(const std::string& store);

  std::filesystem::path directory_;
};

// Runs and expects success.
Result must(const Arguments& arguments);
void expect_failure(const Arguments& arguments, int status, const std::string& code,
                    const std::string& named);

}  // namespace vellum::cli_test
