// The last number is in a file that is overwritten in place, under its own lock. Therefore a claim
// costs one flush, independent of the number of snapshots.
#include "store/catalog/snapshot_order.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "store/catalog/lock/lock_bytes.hpp"
#include "store/catalog/names.hpp"

namespace vellum::store {
namespace {

constexpr const char* kFileName = "snapshots.order";
constexpr std::chrono::seconds kPatience{30};  // a claim takes a flush; the first reads all refs

std::string path_of(const PackStore& store) { return store.path() + "/" + kFileName; }

std::uint64_t largest_of_refs(const PackStore& store) {
  std::uint64_t largest = 0;
  for (const auto& name : snapshot_names(store)) {
    try {
      largest = std::max(largest, read_snapshot(store, name).order);
    } catch (const Error& error) {
      // Removed meanwhile, or corrupted, which must not prevent new snapshots.
      if (error.code() != Errc::not_found && error.code() != Errc::corrupted) throw;
    }
  }
  return largest;
}

void make_file(PackStore& store) {
  const auto bytes = format::encode_snapshot_order(largest_of_refs(store), store.file_seal());
  try {
    base::publish_file(store.fs(), store.tmp_directory(), store.path(), kFileName, bytes, false);
  } catch (const Error& error) {
    if (error.code() != Errc::already_exists) throw;
  }
}

std::unique_ptr<base::File> open_file(PackStore& store) {
  if (!store.fs().exists(path_of(store))) make_file(store);
  return store.fs().open(path_of(store), base::OpenMode::read_write);
}

void lock(base::File& file) {
  bool held = false;
  try {
    held = lock_with_patience(kPatience, [&] { return file.try_lock_exclusive(); });
  } catch (const Error&) {
    return;  // without locks, the user must ensure that one process runs at a time
  }
  if (!held) {
    fail(Errc::busy, "{}: another process holds its lock, and does not let go{}", file.path(),
         base::lock_holders(file.path()));
  }
}

// The number in the file or, if that is corrupted, the largest of the refs.
std::uint64_t last_order(const PackStore& store, const base::File& file) {
  std::vector<std::byte> bytes(format::snapshot_order_bytes(store.file_seal()));
  std::uint64_t order = 0;
  if (file.size_bytes() == bytes.size() && file.try_pread(bytes, 0) == 0 &&
      format::decode_snapshot_order(bytes, store.file_seal(), order) == nullptr) {
    return order;
  }
  return largest_of_refs(store);
}

}  // namespace

std::uint64_t claim_snapshot_order(PackStore& store) {
  const auto file = open_file(store);
  lock(*file);
  const std::uint64_t order = last_order(store, *file) + 1;
  if (order > format::kMaxSnapshotOrder) {
    fail(Errc::corrupted, "{}: no number is left for another snapshot", file->path());
  }
  file->pwrite(format::encode_snapshot_order(order, store.file_seal()), 0);
  file->sync_data();
  return order;
}

void pass_snapshot_order(PackStore& store, std::uint64_t order) {
  const auto file = open_file(store);
  lock(*file);
  if (last_order(store, *file) >= order) return;
  file->pwrite(format::encode_snapshot_order(order, store.file_seal()), 0);
  file->sync_data();
}

void forget_snapshot_order(PackStore& store) {
  if (!store.fs().exists(path_of(store))) return;
  store.fs().unlink(path_of(store));
  store.fs().sync_directory(store.path());
}

}  // namespace vellum::store
