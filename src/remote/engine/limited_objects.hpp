// remote/engine/limited_objects.hpp: an object store with limits for its transfers.
#pragma once

#include <memory>

#include "remote/engine/object_store.hpp"

namespace vellum::remote {

struct TransferLimits {
  std::uint64_t bytes_per_second = 0;  // of both directions together; 0: no limit
  std::size_t connections = 0;         // calls at once; 0: the engine's own number
};

// The store with these limits. The rate is an average: an object is transferred at once, after a
// wait for its bytes if it is written, before one if it is read. stop() ends the waits.
std::unique_ptr<ObjectStore> limit_transfers(std::unique_ptr<ObjectStore> objects,
                                             const TransferLimits& limits);

}  // namespace vellum::remote
