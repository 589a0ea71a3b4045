// mount/write_operations.hpp: the kernel's requests when programs write. Internal to src/mount.
#pragma once

#include "mount/fuse.hpp"

namespace vellum::mount {

void add_write_operations(fuse_lowlevel_ops& operations);

}  // namespace vellum::mount
