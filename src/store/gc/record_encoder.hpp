// store/gc/record_encoder.hpp: the encoding of a record for a rewritten pack.
#pragma once

#include "base/bytes/codec.hpp"
#include "store/gc/pack_plan.hpp"
#include "store/packs/encode/payload.hpp"
#include "store/packs/record/record_io.hpp"

namespace vellum::store {

// Threads: one encoder per thread.
class RecordEncoder {
 public:
  // Compresses the record without the plan's dropped slots. Returns the record's own payload if the
  // result is not smaller.
  EncodedPayload encode(const LoadedRecord& record, const PlannedRecord& plan, int level,
                        bool recompress);

 private:
  base::Compressor compressor_;
};

// Whether `now` equals `before`, bit for bit, in all slots that the plan does not drop.
bool same_content(const LoadedRecord& before, const LoadedRecord& now, const PlannedRecord& plan);

}  // namespace vellum::store
