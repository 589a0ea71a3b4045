// store/gc/record_encoder.hpp: a record as it goes into a pack that is written again.
#pragma once

#include "base/codec.hpp"
#include "store/encode/payload.hpp"
#include "store/gc/pack_plan.hpp"
#include "store/pack/record_io.hpp"

namespace vellum::store {

// Threads: each its own.
class RecordEncoder {
 public:
  // Without what the plan drops, compressed again; or as it is, when that would not be smaller.
  EncodedPayload encode(const LoadedRecord& record, const PlannedRecord& plan, int level,
                        bool recompress);

 private:
  base::Compressor compressor_;
};

// Whether `now` holds, bit for bit, all of `before` that the plan does not drop.
bool same_content(const LoadedRecord& before, const LoadedRecord& now, const PlannedRecord& plan);

}  // namespace vellum::store
