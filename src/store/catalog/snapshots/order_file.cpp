#include "store/catalog/snapshots/order_file.hpp"

#include <vector>

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "format/version.hpp"
#include "store/catalog/lock/lock_bytes.hpp"

namespace vellum::store {
namespace {

constexpr std::chrono::seconds kPatience{30};  // a claim takes a flush; the first reads all refs

bool lock_within(base::File& file, std::chrono::milliseconds patience) {
  try {
    return lock_with_patience(patience, [&] { return file.try_lock_exclusive(); });
  } catch (const Error&) {
    return true;  // without locks, the user must ensure that one process runs at a time
  }
}

std::unique_ptr<base::File> open_if_there(const PackStore& store, base::OpenMode mode) {
  try {
    if (store.fs().exists(order_file_path(store)))
      return store.fs().open(order_file_path(store), mode);
  } catch (const Error& error) {
    if (error.code() == Errc::out_of_memory) throw;
  }
  return nullptr;
}

}  // namespace

std::string order_file_path(const PackStore& store) { return store.path() + "/" + kOrderFileName; }

std::optional<std::uint64_t> order_in(const PackStore& store, const base::File& file) {
  std::vector<std::byte> bytes(format::snapshot_order_bytes(store.file_seal()));
  std::uint64_t order = 0;
  if (file.size_bytes() == bytes.size() && file.try_pread(bytes, 0) == 0 &&
      format::decode_snapshot_order(bytes, store.file_seal(), order) == nullptr) {
    return order;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> assigned_order(const PackStore& store) {
  const auto file = open_if_there(store, base::OpenMode::read_only);
  return file != nullptr ? order_in(store, *file) : std::nullopt;
}

void lock_orders(base::File& file) {
  if (lock_within(file, kPatience)) return;
  fail(Errc::busy, "{}: another process holds its lock, and does not let go{}", file.path(),
       base::lock_holders(file.path()));
}

std::unique_ptr<base::File> lock_orders(const PackStore& store) {
  auto file = open_if_there(store, base::OpenMode::read_write);
  if (file != nullptr) lock_orders(*file);
  return file;
}

std::unique_ptr<base::File> try_lock_orders(const PackStore& store,
                                            std::chrono::milliseconds patience) {
  auto file = open_if_there(store, base::OpenMode::read_write);
  if (file != nullptr && !lock_within(*file, patience)) file.reset();
  return file;
}

}  // namespace vellum::store
