// store/record_encoder.hpp: a record as it goes into a pack that is written again.
#pragma once

#include <vector>

#include "base/codec.hpp"
#include "store/pack_plan.hpp"
#include "store/record_io.hpp"

namespace vellum::store {

struct EncodedRecord {
  base::Codec codec = base::Codec::none;
  std::uint32_t raw_bytes = 0;
  std::vector<std::byte> stored;
  std::vector<std::byte> hash;  // of the raw payload; empty: the record has none
  bool unreadable = false;      // and nothing that counts needs it: it is left out
};

// Threads: each its own.
class RecordEncoder {
 public:
  // Without what the plan drops, compressed again; or as it is, when that would not be smaller.
  EncodedRecord encode(const LoadedRecord& record, const PlannedRecord& plan, int level,
                       bool recompress);

 private:
  base::Compressor compressor_;
};

// Whether `now` holds, bit for bit, all of `before` that the plan does not drop.
bool same_content(const LoadedRecord& before, const LoadedRecord& now, const PlannedRecord& plan);

}  // namespace vellum::store
