// cli/run/left_processes.hpp: processes that a program of `vellum run` has left running.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace vellum::cli {

struct LeftProcess {
  pid_t id = 0;
  std::string name;
  bool holds = false;  // it has a file open below the given directory
};

// This process's descendants, without those that are exiting. Only proc(5) is read: a process that
// ends meanwhile is omitted.
std::vector<LeftProcess> descendants(const std::string& held_below);

}  // namespace vellum::cli
