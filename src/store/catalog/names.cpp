#include "store/catalog/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <random>
#include <string_view>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "format/wire/superblock.hpp"
#include "store/catalog/image_tail_name.hpp"
#include "store/packs/header_error.hpp"

namespace vellum::store {

namespace {
constexpr std::string_view kStagingPrefix = "vellum-snapshot-";
constexpr std::size_t kStagingDigits = 16;
constexpr std::size_t kRefSuffixLength = std::string_view(kRefSuffix).size();
}  // namespace

bool has_branch(const PackStore& store, const std::string& name) {
  if (format::name_problem(name) != nullptr) return false;
  // A link does not count: it could lead out of the store.
  return store.fs().exists(store.journal_path(name)) &&
         store.fs().is_directory(branch_directory(store, name));
}

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

std::string branch_directory(const PackStore& store, const std::string& branch) {
  assert(!branch.empty());
  return store.branches_directory() + "/" + branch;
}

std::string ref_path(const PackStore& store, const std::string& snapshot) {
  assert(!snapshot.empty());
  return store.snapshots_directory() + "/" + snapshot + kRefSuffix;
}

void remove_image_files(const PackStore& store, const std::string& branch) {
  for (const char* name :
       {kImageStateName, kTouchedName, kImageTailName, kImageName, kSnapshotNoteName}) {
    const std::string file = branch_directory(store, branch) + "/" + name;
    if (store.fs().exists(file)) store.fs().unlink(file);
  }
}

// Between open and lock, another process may have removed the branch, and even created it again.
// The lock is then on a file without a name.
std::unique_ptr<base::File> try_lock_branch(PackStore& store, const std::string& branch) {
  for (;;) {
    if (!has_branch(store, branch)) {
      fail(Errc::not_found, "no branch '{}' in {}", branch, store.path());
    }
    std::unique_ptr<base::File> file;
    try {
      file = store.fs().open(store.journal_path(branch), base::OpenMode::read_write);
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
      continue;  // removed just now
    }
    const bool locked = file->try_lock_exclusive();
    if (!file->replaced()) return locked ? std::move(file) : nullptr;
  }
}

std::string random_staging_name() {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}", kStagingPrefix, random(), random());
}

bool is_staging_name(const std::string& name) noexcept {
  return name.size() == kStagingPrefix.size() + kStagingDigits &&
         name.starts_with(kStagingPrefix) &&
         name.find_first_not_of("0123456789abcdef", kStagingPrefix.size()) == std::string::npos;
}

}  // namespace vellum::store
