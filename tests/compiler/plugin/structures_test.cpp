// Crashes of structures that only call msync(): at each commit's boundary, and with any subset of
// the lines that the current commit was writing.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "compiler/plugin/compile_lib.hpp"

namespace vellum::clang_test {
namespace {

namespace fs = std::filesystem;

constexpr int kOperations = 32;
constexpr const char* kJournal = ".vellum-journal";

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class StructuresNoSanitizer : public CompileNoSanitizer {
 protected:
  void SetUp() override {
    program_ = path("program");
    must(built("bin/vellum-clang++") + " -std=c++20 -O2 -I" + VELLUM_SOURCE_DIR + "/bench " +
         program("structures.cpp") + " -o " + program_);
  }
  std::string command(const std::string& shape, const std::string& file) const {
    return "VELLUM_ATOMIC_FILES='" + path("") + "*' VELLUM_ATOMIC_TRACKER=cards " + program_ + " " +
           shape + " " + file + " ";
  }
  // The number of operations in a file after its recovery; the file has to be whole.
  int recovered(const std::string& shape, const std::string& file) const {
    must(built("bin/vellum") + " recover --copied --quiet " + file);
    const Result checked = must(command(shape, file) + "check");
    EXPECT_NE(std::string::npos, checked.output.find("whole")) << checked.output;
    return std::atoi(checked.output.c_str());
  }
  // Some of the 64-byte lines that commit n wrote to its journal have not reached the medium. Nor
  // has its mark, the first line of a block: it is written when all of these are durable.
  void lose_lines(int n, std::mt19937& random, const std::string& torn) const {
    const std::string before = content(path("copies/" + std::to_string(n - 1)) + kJournal);
    std::string after = content(path("copies/" + std::to_string(n)) + kJournal);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t at = 0; at + 64 <= after.size(); at += 64)
      if (random() % 3 == 0 || at % 4096 == 0) std::memcpy(&after[at], &before[at], 64);
    fs::copy_file(path("copies/" + std::to_string(n - 1)), torn);
    std::ofstream(torn + kJournal, std::ios::binary) << after;
  }

  std::string program_;
};

TEST_F(StructuresNoSanitizer, AStructureRecoversToACommit) {
  std::mt19937 random(3);  // NOLINT: the same run each time
  for (const std::string shape : {"list", "btree", "hash"}) {
    fs::remove_all(path("copies"));
    fs::create_directory(path("copies"));
    must("VELLUM_VERIFY_CARDS=1 " + command(shape, path(shape)) + std::to_string(kOperations) +
         " " + path("copies"));
    int lost = 0;
    for (int n = 2; n <= kOperations && !HasFailure(); n += 2) {
      const std::string torn = path("copies/torn" + std::to_string(n));
      lose_lines(n, random, torn);
      const int reached = recovered(shape, torn);
      EXPECT_TRUE(reached == n || reached == n - 1) << shape << " " << n << ": " << reached;
      lost += reached == n - 1;
    }
    EXPECT_GT(lost, kOperations / 4) << "lines were to be lost";
    for (int n = 1; n <= kOperations && !HasFailure(); ++n)
      EXPECT_EQ(n, recovered(shape, path("copies/" + std::to_string(n)))) << shape;
  }
}

}  // namespace
}  // namespace vellum::clang_test
