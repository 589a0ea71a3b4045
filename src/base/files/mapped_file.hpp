// base/files/mapped_file.hpp: a file held open for reading without a descriptor.
//
// A process has few descriptors (often 1,024) and many mappings (65,530). A mapping holds a file as
// a descriptor does, even when its name goes away or becomes another file's. It is read by
// process_vm_readv(2), never by a load: an unreadable or vanished byte then gives an error number,
// as from pread(2), and not a SIGBUS.
#pragma once

#include <cstdint>
#include <memory>

#include "base/files/file.hpp"

namespace vellum::base {

// Returns a read-only file that holds `file` without a descriptor. It may grow up to `room_bytes`;
// reads past that give ENODATA. Returns `file` itself where this cannot be had (no mapping left, a
// test's file, a kernel that forbids process_vm_readv(2)). The file is reopened by its name for as
// long as bytes of it are pinned. `fs` must outlive it.
std::unique_ptr<File> hold_by_mapping(Fs& fs, std::unique_ptr<File> file, std::uint64_t room_bytes);

// How many descriptors one part of the library may hold for long: a share of the process's limit
// (RLIMIT_NOFILE).
std::size_t descriptor_share() noexcept;

}  // namespace vellum::base
