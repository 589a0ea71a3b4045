// bench/lib/report.hpp: the shared parts of all benchmarks: percentiles, a table, and the JSON with
// its targets.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start);

// For a system call that has set errno: throws `what` and its message unless `ok`.
void check(bool ok, const char* what);

// Requests real-time scheduling (SCHED_FIFO; this needs privilege), and reports a refusal. Without
// it, a process that has just been busy may wait for a scheduler tick (up to 4 ms) after its disk
// has answered, and that tick hides everything else.
void prefer_this_process();

// The value below which `percent` of the samples are. REQUIRES: not empty.
double percentile(std::vector<double> samples, double percent);

// Of a member or a function of each item. REQUIRES: not empty.
template <typename Item, typename Of>
double median_of(const std::vector<Item>& items, Of of) {
  std::vector<double> values;
  values.reserve(items.size());
  for (const Item& item : items) values.push_back(std::invoke(of, item));
  return percentile(std::move(values), 50);
}

class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void print() const;  // to standard output; the first column left, the others right

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string fixed(double value, int digits);
std::string human_bytes(double bytes);

// The command line of all benchmarks: --json FILE, --dir DIR (the data directory: a file system
// that matters; default build/bench/data), and the benchmark's own options as --name VALUE.
class Options {
 public:
  Options(int argc, char** argv);
  std::string text(const std::string& name, const std::string& fallback) const;
  std::uint64_t number(const std::string& name, std::uint64_t fallback) const;
  std::string json_file() const { return text("json", ""); }
  // A fresh, empty directory below --dir; removed again by ~Options unless --keep 1.
  const std::string& scratch() const { return scratch_; }
  ~Options();

 private:
  std::vector<std::pair<std::string, std::string>> values_;
  std::string scratch_;
  bool keep_ = false;
};

// The main() of every benchmark: parses the command line, runs, and turns an exception into one
// line on standard error. Returns the exit status.
int run_main(const std::string& name, int argc, char** argv,
             const std::function<void(const Options&)>& run);

// Collects figures and targets; writes {"name", "machine", "figures": {...}, "targets": [{name,
// value, bound, holds}]}.
class Report {
 public:
  explicit Report(std::string name) : name_(std::move(name)) {}
  void figure(const std::string& name, double value);
  // `at_most`: the target holds when value <= bound, otherwise when value >= bound.
  void target(const std::string& name, double value, double bound, bool at_most = true);
  // Prints the targets; writes the JSON when a file is named.
  void finish(const std::string& json_file) const;

 private:
  void print_targets() const;
  void write(const std::string& json_file) const;
  struct Target {
    std::string name;
    double value, bound;
    bool at_most;
    bool holds() const { return at_most ? value <= bound : value >= bound; }
  };
  std::string name_;
  std::vector<std::pair<std::string, double>> figures_;
  std::vector<Target> targets_;
};

}  // namespace bench
