// store/packs/record_place.hpp: where a record lies.
#pragma once

#include <span>

#include "base/files/file.hpp"
#include "format/records/record.hpp"
#include "format/records/translation.hpp"
#include "format/wire/types.hpp"

namespace vellum::store {

// The place that a reference leads to.
struct RecordPlace {
  const char* problem = nullptr;               // why there is no such place; static text
  const base::File* file = nullptr;            // lives as long as the set, like `dropped`
  format::RecordRef record;                    // in that file, as its own header has it
  std::span<const format::SlotRange> dropped;  // slots of the record, given back
  const base::File* copy = nullptr;            // cached; may hold the record at the same place
  int os_errno = 0;                            // with `problem`: the system is to blame
};

}  // namespace vellum::store
