// Opens the image that a crash left, and checks all of it.
#pragma once

#include <memory>
#include <unordered_map>

#include "crash/state_lib.hpp"
#include "support/disk/sim_disk_lib.hpp"

namespace vellum::crash {

using sim::Disk;

struct Finding {
  StoreState state;
  std::string problem;  // empty: the store opens, verifies, takes a commit, and opens again
};

// `names`: a state whose names must be free for creation where the image lacks them.
Finding check_image(const Disk& image, std::uint64_t image_hash, const StoreState& names,
                    const format::Superblock& options);

}  // namespace vellum::crash
