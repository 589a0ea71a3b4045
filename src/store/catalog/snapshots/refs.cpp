#include "store/catalog/snapshots/refs.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>

#include "base/fail.hpp"
#include "format/wire/superblock.hpp"
#include "store/packs/header_error.hpp"

namespace vellum::store {

namespace {
constexpr std::size_t kRefSuffixLength = std::string_view(kRefSuffix).size();
}  // namespace

bool has_snapshot(const PackStore& store, const std::string& name) {
  return format::name_problem(name) == nullptr && store.fs().exists(ref_path(store, name));
}

std::vector<std::string> snapshot_names(const PackStore& store) {
  std::vector<std::string> names;
  for (const auto& entry : store.fs().list(store.snapshots_directory())) {
    if (!entry.name.ends_with(kRefSuffix)) continue;
    std::string name = entry.name.substr(0, entry.name.size() - kRefSuffixLength);
    if (format::name_problem(name) == nullptr) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());  // the suffix may have changed their order
  return names;
}

format::SnapshotRef read_snapshot(const PackStore& store, const std::string& name) {
  const std::string file = ref_path(store, name);
  std::vector<std::byte> bytes;
  try {
    if (format::name_problem(name) == nullptr) {
      bytes = base::read_whole(store.fs(), file, format::kMaxSnapshotRefBytes);
    }
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
  if (bytes.empty() && !has_snapshot(store, name)) {
    fail(Errc::not_found, "no snapshot '{}' in {}", name, store.path());
  }
  format::SnapshotRef ref;
  if (const char* problem = format::decode_snapshot_ref(bytes, store.file_seal(), ref)) {
    fail_header(file, bytes, store.checksum_seed(), problem);
  }
  if (ref.name != name) {
    fail(Errc::corrupted, "{}: the ref belongs to snapshot '{}'", file, ref.name);
  }
  return ref;
}

std::string ref_path(const PackStore& store, const std::string& snapshot) {
  assert(!snapshot.empty());
  return store.snapshots_directory() + "/" + snapshot + kRefSuffix;
}

}  // namespace vellum::store
