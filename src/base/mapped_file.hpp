// base/mapped_file.hpp: a file that is held open to be read without a descriptor.
//
// A process has few descriptors (often 1,024) and many mappings (65,530). A mapping holds a file
// like a descriptor does, also when its name goes or becomes another file's. It is read by
// process_vm_readv(2), never by a load: what the medium does not give, or what is not there any
// more, is an error number then, as from pread(2), and not a SIGBUS.
#pragma once

#include <cstdint>
#include <memory>

#include "base/file.hpp"

namespace vellum::base {

// A file for reading that holds what `file` does, and no descriptor. It may become up to
// `room_bytes` long; past that, reading is ENODATA. Where that cannot be had (no mapping left, a
// file of a test's, a kernel that forbids process_vm_readv(2)): `file` itself. It is opened again
// by its name for as long as bytes of it are marked. `fs` must outlive it.
std::unique_ptr<File> hold_by_mapping(Fs& fs, std::unique_ptr<File> file, std::uint64_t room_bytes);

// How many descriptors one part of the library may hold for long: a share of what the process may
// have (RLIMIT_NOFILE).
std::size_t descriptor_share() noexcept;

}  // namespace vellum::base
