// mount/operations.hpp: the kernel's requests to the file system. Internal to src/mount.
#pragma once

#include "mount/fuse.hpp"

namespace vellum::mount {

// The user data of the session is a Tree.
extern const fuse_lowlevel_ops kOperations;

// Those of programs that write.
void add_write_operations(fuse_lowlevel_ops& operations);

}  // namespace vellum::mount
