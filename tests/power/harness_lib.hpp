// Runs a workload on a file system whose medium is recorded, and mounts the images of power cuts.
#pragma once

#include <string>
#include <vector>

#include "power/file_systems_lib.hpp"
#include "power/workload_lib.hpp"

namespace vellum::power {

struct Effort {
  std::size_t images = 0;  // at most
  std::uint64_t seed = 0;
  bool until_violation = false;  // for planted faults: one is enough
  bool talks = false;            // prints progress on standard error
};

struct Outcome {
  std::size_t writes = 0, flushes = 0;  // recorded
  std::size_t images = 0;               // mounted and checked
  std::size_t unmounted = 0;            // of these: the file system itself was lost
  std::size_t violations = 0;           // mounted, but wrong
  std::vector<std::string> first_problems;
};

Outcome cut_power(const FileSystem& system, Workload& workload, const Effort& effort);

}  // namespace vellum::power
