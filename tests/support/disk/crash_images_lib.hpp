// The images that a power cut could leave, from the log of a SimFs; sim_medium_lib.hpp defines the
// possible ones.
//
// At each step, i.e. after each call of the log, it builds these images:
//   - every subset of the calls that are not durable yet, up to `exhaustive` calls; beyond that,
//     `samples` of them;
//   - the same with writes torn into units of 4 KiB, and of 512 bytes.
// Subsets without the newest call were built at an earlier step and are omitted, unless the allowed
// states have changed.
#pragma once

#include "support/disk/sim_medium_lib.hpp"

namespace vellum::sim {

struct Effort {
  std::size_t exhaustive = 12;      // atoms up to which all subsets are built
  std::size_t samples = 1000;       // seeded subsets beyond
  std::size_t torn_exhaustive = 8;  // the same for torn writes
  std::size_t torn_samples = 150;
};

// All steps of a log in sequence.
class CrashImages {
 public:
  // low, high: the allowed states (Op::states).
  using Visit = std::function<void(const Disk& image, std::size_t low, std::size_t high)>;

  // `fs` outlives this, and its log does not change meanwhile.
  CrashImages(const SimFs& fs, const Effort& effort, std::uint64_t seed);
  void for_each(const Visit& visit);
  std::uint64_t crash_points() const noexcept { return crash_points_; }

 private:
  void step(std::size_t position, const Visit& visit);
  void visit_all(std::size_t newest, const Visit& visit);
  void visit_subsets(const std::vector<Atom>& atoms, std::size_t newest, std::size_t exhaustive,
                     std::size_t samples, const Visit& visit);
  void visit_samples(const std::vector<Atom>& atoms, std::size_t newest, std::size_t samples,
                     const Visit& visit);

  const Log& log_;
  Effort effort_;
  std::mt19937_64 random_;
  Medium medium_;
  std::size_t low_ = 0, high_ = 0;
  std::uint64_t crash_points_ = 0;
};

// Each image once, of the steps after allow_states(low, ...).
void each_image_once(const SimFs& fs, std::size_t low, const Effort& effort,
                     const std::function<void(const Disk&)>& visit);

// One image after the last step of the log, of any of these kinds.
Disk any_image(const SimFs& fs, std::mt19937_64& random);

// The same as a logging file system: the state that the next boot finds, and its operations.
std::unique_ptr<SimFs> next_boot(const SimFs& fs, std::mt19937_64& random);

}  // namespace vellum::sim
