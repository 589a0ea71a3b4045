// store/packs/record_place.hpp: the location of a record.
#pragma once

#include <span>

#include "base/files/file.hpp"
#include "format/records/record.hpp"
#include "format/records/translation.hpp"
#include "format/wire/types.hpp"

namespace vellum::store {

// The location to which a reference resolves.
struct RecordPlace {
  const char* problem = nullptr;               // static text; the reason why there is none, or null
  const base::File* file = nullptr;            // valid as long as the set, like `dropped`
  format::RecordRef record;                    // in that file, as in its own header
  std::span<const format::SlotRange> dropped;  // slots of the record that gc freed
  const base::File* copy = nullptr;            // in a cache; may have the record at the same offset
  int os_errno = 0;                            // with `problem`: the cause, if it is a system error
};

}  // namespace vellum::store
