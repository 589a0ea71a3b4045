#include "lib/report.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

namespace bench {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

void prefer_this_process() {
  sched_param param{};
  param.sched_priority = 1;
  if (sched_setscheduler(0, SCHED_FIFO, &param) != 0) {
    fmt::print("(no real-time scheduling: flushes may show scheduler ticks of up to 4 ms)\n");
  }
}

double percentile(std::vector<double> samples, double percent) {
  std::sort(samples.begin(), samples.end());
  const double rank = std::ceil(percent / 100.0 * static_cast<double>(samples.size()));
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return samples[std::min(index, samples.size() - 1)];
}

void Table::print() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i])
                     : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    fmt::print("{}\n", line);
  }
  std::fflush(stdout);
}

std::string fixed(double value, int digits) { return fmt::format("{:.{}f}", value, digits); }

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 2, units[unit]);
}

Options::Options(int argc, char** argv) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name.rfind("--", 0) != 0 || i + 1 >= argc) {
      throw std::runtime_error("usage: " + std::string(argv[0]) +
                               " [--name VALUE]...; not understood: " + name);
    }
    values_.emplace_back(name.substr(2), argv[i + 1]);
  }
  keep_ = number("keep", 0) != 0;
  scratch_ = text("dir", "build/bench/data") + "/run-" + std::to_string(getpid());
  std::filesystem::create_directories(scratch_);
}

Options::~Options() {
  std::error_code ignored;
  if (!keep_) std::filesystem::remove_all(scratch_, ignored);
}

std::string Options::text(const std::string& name, const std::string& fallback) const {
  for (const auto& [key, value] : values_) {
    if (key == name) return value;
  }
  return fallback;
}

std::uint64_t Options::number(const std::string& name, std::uint64_t fallback) const {
  const std::string value = text(name, "");
  return value.empty() ? fallback : std::stoull(value);
}

int run_main(const std::string& name, int argc, char** argv,
             const std::function<void(const Options&)>& run) {
  try {
    run(Options(argc, argv));
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_{}: {}\n", name, e.what());
    return 1;
  }
}

void Report::figure(const std::string& name, double value) { figures_.emplace_back(name, value); }

void Report::target(const std::string& name, double value, double bound, bool at_most) {
  targets_.push_back({name, value, bound, at_most});
}

void Report::finish(const std::string& json_file) const {
  print_targets();
  write(json_file);
}

void Report::print_targets() const {
  if (targets_.empty()) return;
  Table table({"target", "value", "bound", "holds"});
  for (const auto& t : targets_) {
    table.row({t.name, fmt::format("{:.4g}", t.value),
               fmt::format("{} {:.4g}", t.at_most ? "<=" : ">=", t.bound),
               t.holds() ? "yes" : "NO"});
  }
  fmt::print("\n");
  table.print();
}

void Report::write(const std::string& json_file) const {
  if (json_file.empty()) return;
  utsname system{};
  uname(&system);
  nlohmann::ordered_json json;
  json["name"] = name_;
  json["machine"] = {
      {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
      {"processors", std::thread::hardware_concurrency()}};
  json["figures"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : figures_) json["figures"][name] = value;
  json["targets"] = nlohmann::ordered_json::array();
  for (const auto& t : targets_) {
    json["targets"].push_back(
        {{"name", t.name}, {"value", t.value}, {"bound", t.bound}, {"holds", t.holds()}});
  }
  std::filesystem::path file(json_file);
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file);
  out << json.dump(2) << "\n";
  if (!out.flush()) throw std::runtime_error("cannot write " + json_file);
}

}  // namespace bench
