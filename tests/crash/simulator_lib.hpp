// Runs every crash of a session, and of the recovery from a share of them.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "crash/image_check_lib.hpp"
#include "crash/session_lib.hpp"
#include "support/disk/crash_images_lib.hpp"

namespace vellum::crash {

using sim::CrashImages;
using sim::Effort;

struct SimulatorOptions {
  Effort effort;
  Effort second_effort{8, 20, 6, 12};  // of crashes during recovery
  std::uint64_t recover_one_in = 150;  // images from which recovery is run under the log again
  // Called with all that a session and each recovery wrote.
  std::function<void(const sim::Log&)> on_log = nullptr;
};

struct Totals {
  std::uint64_t sequences = 0;
  std::uint64_t recoveries = 0;
  std::uint64_t crash_points = 0;
  std::uint64_t images_built = 0;
  std::uint64_t images_distinct = 0;
  std::vector<std::string> violations;  // the first few, in full
  std::uint64_t violating = 0;
};

class Simulator {
 public:
  Simulator(SimulatorOptions options, std::string label);
  // `superblock`: to create the store again where the image has none.
  void run(SimSession& session, std::uint64_t seed, const format::Superblock& superblock);
  const Totals& totals() const noexcept { return totals_; }

 private:
  const Finding& find(const Disk& image, const StoreState& names);
  void crash_everywhere(SimSession& session, const Effort& effort, std::uint64_t seed,
                        bool recover);
  void judge(const Disk& image, const std::vector<StoreState>& states, std::size_t low,
             std::size_t high, const Finding& finding, bool in_recovery);
  void recover(const Disk& image, const StoreState& state, std::uint64_t seed);
  void report(const Disk& image, const std::string& what);

  SimulatorOptions options_;
  std::string label_;
  format::Superblock superblock_;
  Totals totals_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Finding>> seen_;  // by hash of the image
  std::vector<std::pair<Disk, StoreState>> to_recover_;
};

}  // namespace vellum::crash
