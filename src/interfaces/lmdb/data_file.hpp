// interfaces/lmdb/data_file.hpp: whether a file is the data of an LMDB environment.
#pragma once

#include "base/files/file.hpp"

namespace vellum::lmdb {

// Whether the file begins like LMDB's data. Errc::corrupted if it does, but cannot be valid.
bool is_data(const base::File& file);

}  // namespace vellum::lmdb
