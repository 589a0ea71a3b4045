// remote/engine/probe.hpp: what the conditional writes of a server are worth.
//
// Some servers check whether an object exists and write it then, without a lock between the two:
// two creators at once can both be told that they made it. A probe finds that out with a good
// chance. It can disprove, but never prove.
#pragma once

#include <cstddef>

#include "remote/engine/object_store.hpp"

namespace vellum::remote {

// What probes make lies here. It is removed by gc where the probe had no right to remove it.
inline constexpr const char* kProbePrefix = "probe/";

struct ProbeOptions {
  std::size_t rounds = 50, creators = 8;
};
struct ProbeResult {
  std::size_t rounds = 0;
  std::size_t several_won = 0;  // rounds in which more than one creator was told that it had won
  std::size_t none_won = 0;
  std::size_t other_content = 0;  // rounds after which the object was not the winner's
  bool one_creator_wins() const noexcept {
    return several_won == 0 && none_won == 0 && other_content == 0;
  }
};

// In each round, creators race for one key, which is removed then, if that is allowed. Where the
// first race shows that it is not, there is no other round.
ProbeResult probe_conditional_writes(ObjectStore& objects, const ProbeOptions& options = {});

}  // namespace vellum::remote
