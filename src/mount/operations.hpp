// mount/operations.hpp: what the kernel asks of the file system. Internal to src/mount.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

namespace vellum::mount {

// The user data of the session is a Tree.
extern const fuse_lowlevel_ops kOperations;

}  // namespace vellum::mount
