// cli/progress.hpp: one line on a terminal that says how far a long command is.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <vellum/store.hpp>

namespace vellum::cli {

// The line goes to standard error, only when that is a terminal, at most ten times a second, and is
// wiped when the meter dies.
class ProgressMeter {
 public:
  ProgressMeter(std::string what, bool wanted);
  ~ProgressMeter();
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;

  // For the library; empty when nothing is to be shown. Valid while the meter lives, from any
  // thread.
  ProgressFn callback();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vellum::cli
