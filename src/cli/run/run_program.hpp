// cli/run/run_program.hpp: starts a program behind libvellum-run.so, and waits for it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace vellum::cli {

// Finds the program as execvp(3) would.
std::string find_program(const std::string& name);

// Throws for a program that the dynamic linker does not start (statically linked, or set-user-ID),
// because its C library cannot be intercepted. Throws for a program that bypasses its C library
// (Go) if it has to read an old version, which it would not find.
void require_preloadable(const std::string& program, bool reads_version);

// The path of libvellum-run.so, relative to this program: built or installed.
std::string preload_library();

struct RunningProgram {
  std::vector<std::string> command;                // its name first
  std::map<std::string, std::string> environment;  // added to this process's own
  // Called about every `period`, if that is not 0, and on each SIGUSR1; must not throw.
  std::chrono::milliseconds period{0};
  std::function<void()> on_tick;
  // Processes with a file open below this directory use the run's files.
  std::string held_below;
  bool quiet = false;
};

// Waits for the program, and for its remaining processes with files of the run; forwards to them
// the signals that would end this process. Returns the status as a shell gives it: 128 and the
// signal's number for a killed program.
int run_program(const RunningProgram& program);

}  // namespace vellum::cli
