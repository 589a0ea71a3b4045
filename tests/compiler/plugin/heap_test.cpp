// Persistent heaps that only the pass makes crash-consistent: Boost.Interprocess's in a plain file,
// Vellum's in a region with tracker cards.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <sys/wait.h>

#include "compiler/plugin/compile_lib.hpp"

namespace vellum::clang_test {
namespace {

class HeapNoSanitizer : public CompileNoSanitizer {
 protected:
  std::string compile(const std::string& source, const std::string& libraries) const {
    const std::string out = path("program");
    must(built("bin/vellum-clang++") + " -std=c++17 -O2 -I" + std::string(VELLUM_SOURCE_DIR) +
         "/include " + program(source) + libraries + " -o " + out);
    return out;
  }
  // Repeatedly runs the command until it is killed at a random time. `check` must find the heap
  // whole, and not behind the previous round.
  static void kill_again_and_again(const std::string& command, const std::string& check) {
    long last = 0;
    std::srand(1);
    for (int round = 0; round < 12; ++round) {
      const pid_t child = fork();
      if (child == 0) {
        const std::string line = "exec " + command + " 100000000 " + std::to_string(round);
        execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
        _exit(127);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(30 + std::rand() % 60));
      kill(child, SIGKILL);
      int status = 0;
      waitpid(child, &status, 0);
      ASSERT_TRUE(WIFSIGNALED(status)) << "ended by itself, with " << WEXITSTATUS(status);
      const std::string said = must(check).output;
      ASSERT_NE(std::string::npos, said.find("whole")) << said;
      const long done = std::atol(said.c_str());
      EXPECT_GE(done, last);
      last = done;
    }
    EXPECT_GT(last, 0);
  }
};

TEST_F(HeapNoSanitizer, ABoostHeapInAPlainFileSurvivesKills) {
  const std::string out = compile("heap.cpp", "");
  const std::string heap =
      "env VELLUM_ATOMIC_FILES='*.heap' VELLUM_ATOMIC_TRACKER=cards " + out + " " + path("a.heap");
  must("VELLUM_VERIFY_CARDS=1 " + heap + " 500 1");
  EXPECT_EQ("500 whole\n", must(heap + " check").output);
  EXPECT_FALSE(std::filesystem::exists(path("a.heap.vellum-journal")));
  kill_again_and_again(heap, heap + " check");
}

TEST_F(HeapNoSanitizer, AVellumHeapInARegionWithCardsSurvivesKills) {
  const std::string out =
      compile("region_heap.cpp", " " + built("lib/libvellum.a") + " " VELLUM_LINK_LIBRARIES);
  must("VELLUM_VERIFY_CARDS=1 " + out + " " + path("store") + " 500 1");
  EXPECT_EQ("500 whole\n", must(out + " " + path("store") + " check").output);
  kill_again_and_again(out + " " + path("store"), out + " " + path("store") + " check");
}

}  // namespace
}  // namespace vellum::clang_test
