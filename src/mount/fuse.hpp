// mount/fuse.hpp: libfuse, as of one version for all of src/mount.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>
