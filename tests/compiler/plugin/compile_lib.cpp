#include "compiler/plugin/compile_lib.hpp"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace vellum::clang_test {

Result run(const std::string& command) {
  // A subshell: the redirection applies to all of it.
  std::FILE* pipe = ::popen(("(" + command + "\n) 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen failed");
  Result result;
  std::array<char, 4096> chunk;
  while (const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), pipe))
    result.output.append(chunk.data(), got);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

Result must(const std::string& command) {
  Result result = run(command);
  EXPECT_EQ(0, result.status) << command << "\n" << result.output;
  return result;
}

std::string built(const std::string& path) { return std::string(VELLUM_BINARY_DIR) + "/" + path; }
std::string program(const std::string& name) {
  return std::string(VELLUM_SOURCE_DIR) + "/tests/compiler/plugin/programs/" + name;
}
std::string clang(int version) { return "VELLUM_CLANG=" + std::to_string(version) + " "; }
std::string tracked_memory() {
  const std::string lib = built("lib");
  return " -L" + lib + " -Wl,-rpath," + lib + " -lvellum-tracked-memory ";
}

CompileNoSanitizer::CompileNoSanitizer() {
  std::string pattern = (std::filesystem::temp_directory_path() / "vellum-pass-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  directory_ = pattern;
}
CompileNoSanitizer::~CompileNoSanitizer() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}
std::string CompileNoSanitizer::file(const std::string& name, const std::string& content) const {
  std::ofstream(path(name)) << content;
  return path(name);
}

}  // namespace vellum::clang_test
