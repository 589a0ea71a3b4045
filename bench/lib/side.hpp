// bench/lib/side.hpp: one of the stores that a benchmark compares.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>
#include <vellum/store.hpp>

#include "lib/report.hpp"

namespace bench {

struct Side {
  vellum::Store store;
  std::string key_file = {};  // with which it signs; empty: it does not
  std::unique_ptr<vellum::Region> region = nullptr;
  std::map<std::string, std::vector<double>> ms = {};  // samples, by what was measured

  template <typename Work>
  void measure(const std::string& what, const Work& work) {
    const auto start = Clock::now();
    work();
    ms[what].push_back(seconds_since(start) * 1e3);
  }
};

}  // namespace bench
