// base/files/mapped_file.hpp: a file held open for reading without a descriptor.
//
// A process has few descriptors (often 1,024) and many mappings (65,530). Like a descriptor, a
// mapping holds a file, even when its name is removed or belongs to another file. It is read by
// process_vm_readv(2), never by a load. An unreadable or truncated byte then gives an error number,
// as from pread(2), and not a SIGBUS.
#pragma once

#include <cstdint>
#include <memory>

#include "base/files/file.hpp"

namespace vellum::base {

// Returns a read-only file that holds `file` without a descriptor. It may grow up to `room_bytes`;
// reads past that return ENODATA. Returns `file` itself if this is impossible (no mapping
// available, a test's file, a kernel that forbids process_vm_readv(2)). While bytes of it are
// pinned, the file is also open by its name. REQUIRES: `fs` outlives it.
std::unique_ptr<File> hold_by_mapping(Fs& fs, std::unique_ptr<File> file, std::uint64_t room_bytes);

// The number of descriptors that one part of the library may keep open: a share of the process's
// limit (RLIMIT_NOFILE).
std::size_t descriptor_share() noexcept;

}  // namespace vellum::base
