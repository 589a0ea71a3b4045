// store/catalog/writer_policy.hpp: when the writers of an open store work in the background.
#pragma once

#include <cstdint>

namespace vellum::store {

struct WriterPolicy {
  // store/branch/background_checkpoint.hpp
  struct Checkpoints {
    // The smallest half of a journal for which a thread is used.
    std::uint32_t least_half_bytes = 256u << 10;
    bool in_call = false;  // for tests: the commit writes the checkpoint itself, without a thread
  };
  // region/background_gc.hpp
  struct Gc {
    std::uint64_t slack_bytes = 32u << 20;  // the minimum of freeable bytes for a gc
    std::uint64_t step_bytes = 4u << 20;    // the minimum of written bytes between two checks
    // The minimum of bytes that are written during a gc, beyond the freed ones, before a commit
    // waits for its end.
    std::uint64_t ahead_bytes = 16u << 20;
    bool in_call = false;  // for tests: no thread; the commit itself collects, at the same points
  };
  Checkpoints checkpoints;
  Gc gc;
};

}  // namespace vellum::store
