// store/gc/pack_copy.hpp: a copy of a pack's file in another directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/files/file.hpp"

namespace vellum::store {

// The name of an unfinished copy, in its target directory or in the store's `tmp`.
std::string copy_file_name(std::uint64_t pack);
bool is_copy_file_name(const std::string& name);

using CopyProgress = std::function<void(std::uint64_t bytes)>;

// Copies `from` to the new file `to`, with holes for zero blocks, then reads the copy back and
// compares it. On return the content is durable, the name is not. Removes the copy if it throws.
// REQUIRES: no process writes `from` meanwhile. A process may punch holes, and the comparison may
// then fail.
void copy_pack_file(base::Fs& fs, const base::File& from, const std::string& to,
                    const CopyProgress& progress);

}  // namespace vellum::store
