// store/gc/pack_copy.hpp: copies a pack's file into another directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/file.hpp"

namespace vellum::store {

// Of a copy in the making, in the directory where it will be, or in the store's `tmp`.
std::string copy_file_name(std::uint64_t pack);
bool is_copy_file_name(const std::string& name);

using CopyProgress = std::function<void(std::uint64_t bytes)>;

// Copies all of `from` to the new file `to`; what is zero becomes holes. Durable on return, but for
// its name; read back and compared. Nothing is left when it throws. REQUIRES: nobody writes `from`
// meanwhile, but to punch holes: then the comparison may fail.
void copy_pack_file(base::Fs& fs, const base::File& from, const std::string& to,
                    const CopyProgress& progress);

}  // namespace vellum::store
