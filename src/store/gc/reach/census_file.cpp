#include "store/gc/reach/census_file.hpp"

#include "format/gc_census.hpp"

namespace vellum::store {

namespace {
constexpr const char* kLiveSetName = "gc.census";
}

std::string live_set_path(const StoreDirectory& store) { return store.path() + "/" + kLiveSetName; }

format::GcCensus read_live_set_file(StoreDirectory& store) {
  format::GcCensus out;
  try {
    const auto bytes =
        base::read_whole(store.fs(), live_set_path(store), format::kMaxGcCensusBytes);
    format::decode_gc_census(bytes, store.superblock().store_id, out);
  } catch (const Error&) {
    // The caller reads the maps instead.
  }
  return out;
}

namespace {

bool is_there(StoreDirectory& store, const std::vector<std::byte>& bytes) {
  const std::string path = live_set_path(store);
  try {
    return base::read_whole(store.fs(), path, format::kMaxGcCensusBytes) == bytes;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void write_live_set_file(StoreDirectory& store, const format::GcCensus& live_set, bool flush) {
  try {
    const auto bytes = format::encode_gc_census(live_set, store.superblock().store_id);
    if (bytes.empty()) {
      store.fs().unlink(live_set_path(store));
    } else if (!flush) {
      base::replace_hint_file(store.fs(), store.tmp_directory(), store.path(), kLiveSetName, bytes);
    } else if (!is_there(store, bytes)) {
      base::publish_file(store.fs(), store.tmp_directory(), store.path(), kLiveSetName, bytes,
                         true);
    }
  } catch (const Error&) {
    // The next gc reads the maps instead.
  }
}

}  // namespace vellum::store
