// cli/files/backup_source.hpp: the input of `vellum backup`: a file that others may have open.
#pragma once

#include <memory>
#include <string>

#include "store/stream/content.hpp"

namespace vellum::cli {

// LMDB's file as of one transaction, beside its writers. With `stopped`, and for any other file, the
// file as it is, provided that nobody writes it meanwhile. Where the bytes are not of one moment,
// reading ends with Errc::busy, which names the file.
std::unique_ptr<store::Content> open_backup_source(const std::string& file, bool stopped);

}  // namespace vellum::cli
