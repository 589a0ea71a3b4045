// fuzz/target.hpp: the definition of a fuzz target. The same functions run under libFuzzer
// (main_libfuzzer.cpp) and, over the committed seeds and regressions, in every ordinary build
// (main_replay.cpp).
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace vellum::fuzz {

using Bytes = std::vector<std::byte>;
using View = std::span<const std::byte>;

struct Target {
  const char* name;
  void (*run)(View input);  // aborts when a property does not hold
};

// Every target of this program: decoder_targets.cpp or store_targets.cpp has the list.
std::span<const Target> targets();

// libFuzzer keeps the input of a run that aborts.
inline void require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", property);
  std::abort();
}

}  // namespace vellum::fuzz
