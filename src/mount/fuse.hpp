// mount/fuse.hpp: libfuse, with the same API version in all of src/mount.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>
