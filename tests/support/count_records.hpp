// How many records of a type the packs of a store hold, live or not.
#pragma once

#include <cstddef>

#include "store/catalog/store_directory.hpp"
#include "store/packs/pack_scanner.hpp"

namespace vellum::test {

inline std::size_t count_records(store::StoreDirectory& store, format::RecordType type) {
  std::size_t n = 0;
  for (const std::uint64_t pack : store.packs().list()) {
    const auto file = store.fs().open(store.packs().path_of(pack), base::OpenMode::read_only);
    store::PackScanner scanner(*file, pack, store.checksum_seed(), format::kPackHeaderBytes,
                               file->size_bytes());
    for (format::RecordHeader h; scanner.next(h);) n += h.type == type ? 1 : 0;
  }
  return n;
}

}  // namespace vellum::test
