#include "store/gc/reach/census_file.hpp"

#include "format/gc_census.hpp"

namespace vellum::store {

namespace {

constexpr const char* kCensusName = "gc.census";

}  // namespace

std::string census_path(const StoreDirectory& store) { return store.path() + "/" + kCensusName; }

format::GcCensus read_census_file(StoreDirectory& store) {
  format::GcCensus out;
  try {
    const auto bytes = base::read_whole(store.fs(), census_path(store), format::kMaxGcCensusBytes);
    format::decode_gc_census(bytes, store.file_seal(), out);
  } catch (const Error&) {
    // The caller reads the maps instead.
  }
  return out;
}

void write_census_file(StoreDirectory& store, const format::GcCensus& census, bool flush) {
  try {
    const auto bytes = format::encode_gc_census(census, store.file_seal());
    if (bytes.empty()) {
      store.fs().unlink(census_path(store));
    } else if (!flush) {
      base::replace_hint_file(store.fs(), store.tmp_directory(), store.path(), kCensusName, bytes);
    } else if (read_census_file(store) != census) {
      base::publish_file(store.fs(), store.tmp_directory(), store.path(), kCensusName, bytes, true);
    }
  } catch (const Error&) {
    // The next gc reads the maps instead.
  }
}

}  // namespace vellum::store
