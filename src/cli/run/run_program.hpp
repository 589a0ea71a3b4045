// cli/run/run_program.hpp: starts a program behind libvellum-run.so, and waits for it.
#pragma once

#include <sys/types.h>
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

// A process that the program has left running.
struct LeftProcess {
  pid_t id = 0;
  std::string name;
  bool holds = false;  // it has a file open below the given directory
};

// This process's descendants, without those that are exiting. Only proc(5) is read: a process that
// ends meanwhile is omitted.
std::vector<LeftProcess> descendants(const std::string& held_below);

// The library that has to precede libvellum-run.so in LD_PRELOAD if the program was built with
// AddressSanitizer; otherwise empty. Throws Errc::unsupported for ThreadSanitizer: it replaces the
// same functions, and starts neither before nor after another library that does.
std::string sanitizer_library(const std::string& program);

}  // namespace vellum::cli
