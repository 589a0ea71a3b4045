// store/gc/record_encoder.hpp: the encoding of a record for a pack that is written again.
#pragma once

#include "base/bytes/codec.hpp"
#include "store/gc/pack_plan.hpp"
#include "store/packs/encode/payload.hpp"
#include "store/packs/record/record_io.hpp"

namespace vellum::store {

// Threads: each has its own encoder.
class RecordEncoder {
 public:
  // Compresses the record again without the plan's dropped slots, or returns it as it is if that
  // would not be smaller.
  EncodedPayload encode(const LoadedRecord& record, const PlannedRecord& plan, int level,
                        bool recompress);

 private:
  base::Compressor compressor_;
};

// Whether `now` holds, bit for bit, all of `before` that the plan does not drop.
bool same_content(const LoadedRecord& before, const LoadedRecord& now, const PlannedRecord& plan);

}  // namespace vellum::store
