// Runs the compiler wrappers and the compiled programs.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace vellum::clang_test {

struct Result {
  int status = -1;
  std::string output;  // standard output and standard error
};

Result run(const std::string& command);
// As above; fails the test where the status is not 0.
Result must(const std::string& command);

// A path of this build: bin/vellum-clang, lib/libvellum-cards.so.
std::string built(const std::string& path);
// A file of programs/.
std::string program(const std::string& name);
// A variable assignment of the shell, to precede a command.
std::string clang(int version);
// The option that links a program to the tests' tracked memory.
std::string tracked_memory();

// Its own directory, removed afterwards.
class CompileNoSanitizer : public ::testing::Test {
 protected:
  CompileNoSanitizer();
  ~CompileNoSanitizer() override;
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::string file(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace vellum::clang_test
