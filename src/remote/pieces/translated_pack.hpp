// remote/pieces/translated_pack.hpp: a pack made of records that came from anywhere.
#pragma once

#include <string>
#include <vector>

#include "remote/pieces/merged_record.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// Writes the records as a translated pack and puts it in the place of the file at `path`, durable.
// Records of one reference must not come twice. Errc::busy: somebody has a version open that pins
// the old file. REQUIRES: the caller holds what gc holds, and no writer goes on writing the pack.
void write_translated_pack(store::StoreDirectory& store, std::uint64_t pack,
                           const std::string& path, std::vector<OwnedRecord> records);

}  // namespace vellum::remote
