// cli/files/backup_source.hpp: the input of `vellum backup`: a file that other programs may have
// open.
#pragma once

#include <memory>
#include <string>

#include "store/stream/content.hpp"

namespace vellum::cli {

// An LMDB file in the state of one transaction, concurrent with its writers. With `stopped`, and
// for any other file, the file's current bytes, provided that no program writes it meanwhile. If it
// was written meanwhile, reading fails with Errc::busy, which names the file.
std::unique_ptr<store::Content> open_backup_source(const std::string& file, bool stopped);

}  // namespace vellum::cli
