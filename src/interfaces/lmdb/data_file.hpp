// interfaces/lmdb/data_file.hpp: whether a file is the data of an LMDB environment.
#pragma once

#include <optional>

#include "base/files/file.hpp"
#include "interfaces/lmdb/format.hpp"

namespace vellum::lmdb {

// The format of a file that begins like LMDB's data; none: it does not. Errc::corrupted: it does,
// but cannot be valid. Errc::unsupported: a later version than 1.0's. LMDB 0.9's library reports other
// versions of its own format.
std::optional<DataFormat> data_format(const base::File& file);

}  // namespace vellum::lmdb
