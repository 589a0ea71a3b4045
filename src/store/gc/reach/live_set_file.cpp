#include "store/gc/reach/live_set_file.hpp"

#include "format/saved_live_set.hpp"

namespace vellum::store {

namespace {
constexpr const char* kLiveSetName = "gc.census";
}

std::string live_set_path(const StoreCore& store) { return store.path() + "/" + kLiveSetName; }

format::SavedLiveSet read_live_set_file(StoreCore& store) {
  format::SavedLiveSet out;
  try {
    const auto bytes =
        base::read_whole(store.fs(), live_set_path(store), format::kMaxSavedLiveSetBytes);
    format::decode_saved_live_set(bytes, store.superblock().store_id, out);
  } catch (const Error&) {
    // The caller reads the maps instead.
  }
  return out;
}

namespace {

bool is_there(StoreCore& store, const std::vector<std::byte>& bytes) {
  const std::string path = live_set_path(store);
  try {
    return base::read_whole(store.fs(), path, format::kMaxSavedLiveSetBytes) == bytes;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void write_live_set_file(StoreCore& store, const format::SavedLiveSet& live_set, bool flush) {
  try {
    const auto bytes = format::encode_saved_live_set(live_set, store.superblock().store_id);
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
