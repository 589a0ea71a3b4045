// remote/engine/probe.hpp: a test of a server's conditional writes.
//
// Some servers check whether an object exists and then write it, without a lock: two concurrent
// creators can both get a success. A probe detects such a server with high probability. It can
// disprove correctness, but not prove it.
#pragma once

#include <cstddef>

#include "remote/engine/object_store.hpp"

namespace vellum::remote {

// The prefix of a probe's objects. gc removes those that the probe was not permitted to remove.
inline constexpr const char* kProbePrefix = "probe/";

struct ProbeOptions {
  std::size_t rounds = 50, creators = 8;
};
struct ProbeResult {
  std::size_t rounds = 0;
  std::size_t several_won = 0;  // rounds with more than one winner
  std::size_t none_won = 0;
  std::size_t other_content = 0;  // rounds whose object is not the winner's
  bool one_creator_wins() const noexcept {
    return several_won == 0 && none_won == 0 && other_content == 0;
  }
};

// In each round, creators race for one key, which is then removed. If the first round shows that
// removal is not permitted, it is the only round.
ProbeResult probe_conditional_writes(ObjectStore& objects, const ProbeOptions& options = {});

}  // namespace vellum::remote
