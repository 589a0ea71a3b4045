#include "store/reach/census_file.hpp"

#include "format/saved_census.hpp"

namespace vellum::store {

namespace {
constexpr const char* kCensusName = "gc.census";
}

std::string census_path(const StoreCore& store) { return store.path() + "/" + kCensusName; }

format::SavedCensus read_census_file(StoreCore& store) {
  format::SavedCensus out;
  try {
    const auto bytes =
        base::read_whole(store.fs(), census_path(store), format::kMaxSavedCensusBytes);
    format::decode_saved_census(bytes, store.superblock().store_id, out);
  } catch (const Error&) {
    // The caller reads the maps instead.
  }
  return out;
}

namespace {

bool is_there(StoreCore& store, const std::vector<std::byte>& bytes) {
  const std::string path = census_path(store);
  try {
    return base::read_whole(store.fs(), path, format::kMaxSavedCensusBytes) == bytes;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void write_census_file(StoreCore& store, const format::SavedCensus& census, bool flush) {
  try {
    const auto bytes = format::encode_saved_census(census, store.superblock().store_id);
    if (bytes.empty()) {
      store.fs().unlink(census_path(store));
    } else if (!flush) {
      base::replace_hint_file(store.fs(), store.tmp_directory(), store.path(), kCensusName, bytes);
    } else if (!is_there(store, bytes)) {
      base::publish_file(store.fs(), store.tmp_directory(), store.path(), kCensusName, bytes, true);
    }
  } catch (const Error&) {
    // The next gc reads the maps instead.
  }
}

}  // namespace vellum::store
