// cli/left_processes.hpp: what a program of `vellum run` has left running.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace vellum::cli {

struct LeftProcess {
  pid_t id = 0;
  std::string name;
  bool holds = false;  // it has something open below the given directory
};

// This process's children, their children and so on, less those that are at their end. They are
// asked for nothing: one that ends meanwhile is left out.
std::vector<LeftProcess> descendants(const std::string& held_below);

}  // namespace vellum::cli
