// cli/run_program.hpp: starting a program behind libvellum-run.so, and waiting for it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace vellum::cli {

// As execvp(3) would find it.
std::string find_program(const std::string& name);

// Throws for one that the dynamic linker does not start (statically linked, or set-user-ID), as
// nothing can be put in front of its C library; and for one that goes around that (Go) when it is
// to read an old version, which it would not find.
void require_preloadable(const std::string& program, bool reads_version);

// libvellum-run.so, beside this program: built or installed.
std::string shim_library();

struct RunningProgram {
  std::vector<std::string> command;                // its name first
  std::map<std::string, std::string> environment;  // what is added to this one's
  // Called about every `period`, when that is not 0, and for each SIGUSR1; may throw nothing.
  std::chrono::milliseconds period{0};
  std::function<void()> on_tick;
  // Who has something open below this directory uses the run's files.
  std::string held_below;
  bool quiet = false;
};

// Runs it to its end, and that of processes that it has left running with files of the run; signals
// that would end this process go to them. The status as a shell gives it: 128 and the signal's
// number for one that was killed.
int run_program(const RunningProgram& program);

}  // namespace vellum::cli
