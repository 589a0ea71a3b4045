// A program that writes files, with the states that a power cut may leave of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "power/block_log_lib.hpp"
#include "power/shared_memory_lib.hpp"

namespace vellum::power {

// Its directory, and where it reports its progress.
struct Site {
  std::string directory;
  Progress& progress;
  const Descriptor& progress_file;  // the same, for programs that it starts
};

// The states that a power cut may leave, and the choice for operations on the image.
struct Allowed {
  std::uint64_t returned = 0, begun = 0;
  std::uint64_t choice = 0;  // any number, another one for each image
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual const char* name() const = 0;
  // Called once. No file of the directory is open when it returns.
  virtual void run(const Site& site) = 0;
  // Throws a std::exception that describes the violation. May write.
  virtual void check(const std::string& directory, const Allowed& allowed) = 0;
};

std::unique_ptr<Workload> store_workload(std::uint64_t seed, std::size_t steps);
std::unique_ptr<Workload> tiers_workload(std::uint64_t rounds);
std::unique_ptr<Workload> atomic_file_workload(std::uint64_t seed, std::uint64_t commits);
// An LMDB of `transactions`, under `vellum run`.
std::unique_ptr<Workload> run_workload(std::uint64_t seed, std::uint64_t transactions);

// Controls: the promises of other databases, checked by the same means.
std::unique_ptr<Workload> sqlite_workload(std::uint64_t seed, std::uint64_t transactions);
// Without `flushed` it has a planted fault.
std::unique_ptr<Workload> lmdb_workload(std::uint64_t seed, std::uint64_t transactions,
                                        bool flushed = true);

}  // namespace vellum::power
