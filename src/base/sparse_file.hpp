// base/sparse_file.hpp: publishing a file that is mostly a hole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/file.hpp"

namespace vellum::base {

// As publish_file() where the name must be free: a file of `size_bytes` that starts with `start`
// and is zero behind it, as a hole, as far as the file system has holes.
void publish_sparse_file(Fs& fs, const std::string& tmp_directory, const std::string& directory,
                         const std::string& name, std::span<const std::byte> start,
                         std::uint64_t size_bytes);

}  // namespace vellum::base
