// A program that writes files and knows what a power cut may leave of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "power/block_log_lib.hpp"
#include "power/shared_memory_lib.hpp"

namespace vellum::power {

// Where it works, and where it says how far it is.
struct Site {
  std::string directory;
  Progress& progress;
  const Descriptor& progress_file;  // the same, for programs that it starts
};

// The states that a power cut may leave, and what to do with the image besides looking at it.
struct Allowed {
  std::uint64_t returned = 0, begun = 0;
  std::uint64_t choice = 0;  // any number, another one for each image
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual const char* name() const = 0;
  // Once. No file of the directory is open when it returns.
  virtual void run(const Site& site) = 0;
  // Throws a std::exception that says what is wrong. May write.
  virtual void check(const std::string& directory, const Allowed& allowed) = 0;
};

std::unique_ptr<Workload> store_workload(std::uint64_t seed, std::size_t steps);
std::unique_ptr<Workload> tiers_workload(std::uint64_t rounds);
std::unique_ptr<Workload> atomic_file_workload(std::uint64_t seed, std::uint64_t commits);
// An LMDB of `transactions`, under `vellum run`.
std::unique_ptr<Workload> run_workload(std::uint64_t seed, std::uint64_t transactions);

// Controls: what others promise, by the same means.
std::unique_ptr<Workload> sqlite_workload(std::uint64_t seed, std::uint64_t transactions);
// Without `flushed` it is a planted fault.
std::unique_ptr<Workload> lmdb_workload(std::uint64_t seed, std::uint64_t transactions,
                                        bool flushed = true);

}  // namespace vellum::power
