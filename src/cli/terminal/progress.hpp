// cli/terminal/progress.hpp: a progress line on a terminal for long commands.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <vellum/store.hpp>

namespace vellum::cli {

// The line is printed on standard error, if that is a terminal, at most ten times a second. The
// destructor clears it.
class ProgressMeter {
 public:
  ProgressMeter(std::string what, bool wanted);
  ~ProgressMeter();
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;

  // For the library; empty if no progress is shown. Valid as long as the meter exists. Threads:
  // any.
  ProgressFn callback();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vellum::cli
