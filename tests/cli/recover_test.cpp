// vellum recover: what a killed program has committed comes to its file.
#include <unistd.h>
#include <vellum/msync.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "cli/run_lib.hpp"

namespace vellum::cli_test {
namespace {

class Recover : public CliTest {
 protected:
  std::string target() const { return path("file"); }
  // A program commits one text, stores another, and dies.
  void leave_a_journal() const {
    std::ofstream(target()) << std::string(10000, '.');
    const pid_t child = fork();
    if (child == 0) {
      const int fd = open(target().c_str(), O_RDWR);
      void* at = vellum_mmap(nullptr, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      auto* text = static_cast<char*>(at);
      std::memcpy(text + 5000, "committed", 9);
      if (vellum_msync(at, 10000, MS_SYNC) != 0) _exit(1);
      std::memcpy(text + 6000, "not", 3);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_EQ(0, status);
  }
};

TEST_F(Recover, BringsTheLastCommitToTheFile) {
  leave_a_journal();
  EXPECT_EQ(std::string(10000, '.'), read_file(target()));
  const auto report = must({"recover", target(), "--json"}).json();
  EXPECT_EQ(true, report.at("journal"));
  EXPECT_EQ(1, report.at("commits"));
  EXPECT_EQ(std::string(5000, '.') + "committed" + std::string(4991, '.'), read_file(target()));
  EXPECT_FALSE(std::filesystem::exists(target() + ".vellum-journal"));
  EXPECT_NE(must({"recover", target()}).out.find("nothing to recover"), std::string::npos);
}

TEST_F(Recover, RefusesAJournalOfAnotherFileUnlessItIsToldOfACopy) {
  leave_a_journal();
  const std::string copy = path("copy");
  for (const char* suffix : {"", ".vellum-journal"})
    std::filesystem::copy_file(target() + suffix, copy + suffix);
  const auto refused = run({"recover", copy});
  EXPECT_EQ(11, refused.status);
  EXPECT_NE(refused.err.find("--copied"), std::string::npos) << refused.err;
  EXPECT_EQ(std::string(10000, '.'), read_file(copy));
  must({"recover", copy, "--copied"});
  EXPECT_EQ("committed", read_file(copy).substr(5000, 9));
}

TEST_F(Recover, WhatIsNoFileIsRefusedByName) {
  const auto missing = run({"recover", path("none")});
  EXPECT_EQ(3, missing.status);
  EXPECT_NE(missing.err.find("/none"), std::string::npos) << missing.err;
  EXPECT_NE(0, run({"recover", directory_.string()}).status);
}

}  // namespace
}  // namespace vellum::cli_test
