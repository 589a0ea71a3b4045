// The last number is in a file that is overwritten in place, under its own lock. Therefore a claim
// costs one flush, independent of the number of snapshots.
#include "store/catalog/snapshots/snapshot_order.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "store/catalog/snapshots/newest_snapshots.hpp"
#include "store/catalog/snapshots/order_file.hpp"
#include "store/catalog/snapshots/refs.hpp"

namespace vellum::store {
namespace {

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
    base::publish_file(store.fs(), store.tmp_directory(), store.path(), kOrderFileName, bytes,
                       false);
  } catch (const Error& error) {
    if (error.code() != Errc::already_exists) throw;
  }
}

std::unique_ptr<base::File> open_file(PackStore& store) {
  if (!store.fs().exists(order_file_path(store))) make_file(store);
  return store.fs().open(order_file_path(store), base::OpenMode::read_write);
}

// The number in the file or, if that is corrupted, the largest of the refs.
std::uint64_t last_order(const PackStore& store, const base::File& file) {
  const auto number = order_in(store, file);
  return number ? *number : largest_of_refs(store);
}

void assign(const PackStore& store, base::File& file, std::uint64_t before, std::uint64_t order) {
  file.pwrite(format::encode_snapshot_order(order, store.file_seal()), 0);
  file.sync_data();
  note_assigned_order(store, before, order);
}

}  // namespace

std::uint64_t claim_snapshot_order(PackStore& store) {
  const auto file = open_file(store);
  lock_orders(*file);
  const std::uint64_t before = last_order(store, *file), order = before + 1;
  if (order > format::kMaxSnapshotOrder) {
    fail(Errc::corrupted, "{}: no number is left for another snapshot", file->path());
  }
  assign(store, *file, before, order);
  return order;
}

void pass_snapshot_order(PackStore& store, std::uint64_t order) {
  const auto file = open_file(store);
  lock_orders(*file);
  if (const std::uint64_t before = last_order(store, *file); before < order)
    assign(store, *file, before, order);
}

void forget_snapshot_order(PackStore& store) {
  if (!store.fs().exists(order_file_path(store))) return;
  store.fs().unlink(order_file_path(store));
  store.fs().sync_directory(store.path());
}

}  // namespace vellum::store
