// mount/fuse.hpp: libfuse, with the same API version in all of src/mount, and the kernel's requests to
// the file system. Internal to src/mount.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

namespace vellum::mount {

// The user data of the session is a Tree.
extern const fuse_lowlevel_ops kOperations;

// Those of programs that write.
void add_write_operations(fuse_lowlevel_ops& operations);

}  // namespace vellum::mount
