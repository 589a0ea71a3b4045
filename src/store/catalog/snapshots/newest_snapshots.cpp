#include "store/catalog/snapshots/newest_snapshots.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "format/newest_snapshots.hpp"
#include "store/catalog/snapshots/order_file.hpp"
#include "store/catalog/snapshots/refs.hpp"

namespace vellum::store {
namespace {

using format::DirectoryState;
using format::NewestSnapshots;
using format::SnapshotRef;
using Entry = NewestSnapshots::Entry;

constexpr std::size_t kNewestNoted = 128;
// Many removals of the newest leave as many entries as are asked for.
static_assert(kNewestFast <= kNewestNoted / 2);
static_assert(kNewestNoted <= format::kMaxNewestSnapshots);
constexpr const char* kNewestName = "snapshots.newest";
constexpr const char* kLatestMember = "latest+";
// Of a reader, which can read all refs instead. A writer holds the lock for a flush.
constexpr std::chrono::milliseconds kReaderPatience{200};
// Of a removal, which does not need the lock: without it, the file is dropped.
constexpr std::chrono::milliseconds kRemovalPatience{100};

Entry entry_of(const SnapshotRef& ref) { return {ref.order, ref.name}; }

std::string newest_path(const PackStore& store) { return store.path() + "/" + kNewestName; }

std::optional<NewestSnapshots> read_file(const PackStore& store) {
  NewestSnapshots noted;
  try {
    if (!store.fs().exists(newest_path(store))) return std::nullopt;
    const auto bytes =
        base::read_whole(store.fs(), newest_path(store), format::kMaxNewestSnapshotsBytes);
    if (format::decode_newest_snapshots(bytes, store.file_seal(), noted) != nullptr)
      return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // all refs are read then
  }
  return noted;
}

void write_file(const PackStore& store, const NewestSnapshots& noted) {
  base::replace_hint_file(store.fs(), store.tmp_directory(), store.path(), kNewestName,
                          format::encode_newest_snapshots(noted, store.file_seal()));
}

// Other programs with a store on the same machine would use a file that could not be replaced.
void drop_file(const PackStore& store) noexcept {
  try {
    if (store.fs().exists(newest_path(store))) store.fs().unlink(newest_path(store));
  } catch (const std::exception&) {
    // It states an earlier time of the directory.
  }
}

std::optional<DirectoryState> refs_state(const PackStore& store) {
  const auto state = store.fs().directory_state(store.snapshots_directory());
  if (!state) return std::nullopt;
  return DirectoryState{state->modified_ns, state->changed_ns, state->inode};
}

bool is_current(const PackStore& store, const NewestSnapshots& noted) {
  return refs_state(store) == noted.refs && assigned_order(store) == noted.last_order;
}

std::optional<NewestSnapshots> current_file(const PackStore& store) {
  auto noted = read_file(store);
  try {
    if (noted && is_current(store, *noted)) return noted;
  } catch (const Error&) {
  }
  return std::nullopt;
}

// Gives the directory of refs a time that no change of it gets, and that the file does not state,
// also after the clock was set back. nullopt: this is not possible, for example because it belongs to
// another user. REQUIRES: the lock of orders is held.
std::optional<DirectoryState> mark_refs(const PackStore& store) {
  const std::string& directory = store.snapshots_directory();
  const auto before = refs_state(store);
  if (!before) return std::nullopt;
  constexpr std::int64_t kStep = 1000;  // some file systems keep microseconds, or a tenth of one
  std::int64_t mark = std::max<std::int64_t>(base::wall_clock_ns(), kStep) / kStep * kStep;
  if (const auto noted = read_file(store); noted && mark <= noted->refs.modified_ns) {
    if (noted->refs.modified_ns > std::numeric_limits<std::int64_t>::max() - 2 * kStep)
      return std::nullopt;
    mark = noted->refs.modified_ns + kStep;
  }
  if (mark == before->modified_ns) mark += kStep;
  store.fs().set_directory_time(directory, mark);
  const auto after = refs_state(store);
  return after && after->modified_ns == mark ? after : std::nullopt;
}

// A list of all refs is complete for the file if neither changed while it was read.
struct ListStart {
  std::uint64_t last_order = 0;
  DirectoryState refs;
};

// REQUIRES: the lock of orders is held.
std::optional<ListStart> start_list(const PackStore& store) {
  const auto order = assigned_order(store);
  if (!order) return std::nullopt;
  const auto mark = mark_refs(store);
  if (!mark) return std::nullopt;
  return ListStart{*order, *mark};
}

// Without those removed meanwhile.
std::vector<SnapshotRef> read_refs(const PackStore& store, const std::vector<std::string>& names) {
  std::vector<SnapshotRef> refs;
  refs.reserve(names.size());
  for (const std::string& name : names) {
    try {
      refs.push_back(read_snapshot(store, name));
    } catch (const Error& error) {
      if (error.code() != Errc::not_found) throw;
    }
  }
  std::sort(refs.begin(), refs.end(), [](const SnapshotRef& a, const SnapshotRef& b) {
    return format::comes_before(entry_of(a), entry_of(b));
  });
  return refs;
}

// `refs`: of all snapshots, in order. REQUIRES: the lock of orders is held.
void write_list(const PackStore& store, const ListStart& start,
                const std::vector<SnapshotRef>& refs) {
  NewestSnapshots noted{start.last_order, start.refs, refs.size() <= kNewestNoted, false, {}};
  if (!is_current(store, noted)) return;
  noted.has_latest_members = std::any_of(refs.begin(), refs.end(), [](const SnapshotRef& ref) {
    return ref.name.starts_with(kLatestMember);
  });
  for (std::size_t i = 0; i < std::min(refs.size(), kNewestNoted); ++i)
    noted.entries.push_back(entry_of(refs[i]));
  write_file(store, noted);
}

// Runs one of the two above under the lock of orders. A reader's attempt: its own errors do not
// count, also on a medium that cannot be written.
template <typename Step>
void try_locked(const PackStore& store, const Step& step) {
  try {
    if (const auto lock = try_lock_orders(store, kReaderPatience)) step();
  } catch (const Error& error) {
    if (error.code() == Errc::out_of_memory) throw;
  }
}

// The file is worth its write if it saves the reading of many refs.
std::vector<SnapshotRef> read_all_refs(const PackStore& store, bool may_write) {
  std::vector<std::string> names = snapshot_names(store);
  std::optional<ListStart> start;
  if (may_write && names.size() > kNewestNoted)
    try_locked(store, [&] { start = start_list(store); });
  if (start) names = snapshot_names(store);
  std::vector<SnapshotRef> refs = read_refs(store, names);
  if (start) try_locked(store, [&] { write_list(store, *start, refs); });
  return refs;
}

// Each ref is checked: a program that does not know the file may have removed it just now.
std::optional<std::vector<SnapshotRef>> read_noted(const PackStore& store,
                                                   const NewestSnapshots& noted, std::size_t most) {
  if (!noted.has_all && noted.entries.size() < most) return std::nullopt;
  std::vector<SnapshotRef> refs;
  for (const Entry& entry : noted.entries) {
    if (refs.size() == most) break;
    try {
      refs.push_back(read_snapshot(store, entry.name));
    } catch (const Error& error) {
      if (error.code() == Errc::out_of_memory) throw;
      return std::nullopt;
    }
    if (refs.back().order != entry.order) return std::nullopt;
  }
  return refs;
}

// A file that a writer is about to replace seems to be behind: waits for that writer.
std::optional<NewestSnapshots> settled_file(const PackStore& store) {
  auto noted = current_file(store);
  if (!noted && read_file(store)) try_locked(store, [&] { noted = current_file(store); });
  return noted;
}

void add_entry(NewestSnapshots& noted, const SnapshotRef& ref) {
  Entry entry = entry_of(ref);
  noted.has_latest_members = noted.has_latest_members || entry.name.starts_with(kLatestMember);
  const auto at =
      std::lower_bound(noted.entries.begin(), noted.entries.end(), entry, format::comes_before);
  if (at == noted.entries.end() && !noted.has_all) return;  // others may be between
  noted.entries.insert(at, std::move(entry));
  if (noted.entries.size() <= kNewestNoted) return;
  noted.entries.pop_back();
  noted.has_all = false;
}

// Of a store with few snapshots, so that the file exists before they are many.
void write_first_file(const PackStore& store) {
  if (assigned_order(store).value_or(kNewestNoted + 1) > kNewestNoted) return;
  const auto start = start_list(store);
  if (start) write_list(store, *start, read_refs(store, snapshot_names(store)));
}

// nullopt: the directory may still have the state of the file, which is dropped.
std::optional<DirectoryState> mark_or_drop(const PackStore& store) noexcept {
  try {
    if (auto mark = mark_refs(store)) return mark;
  } catch (const std::exception&) {
    // Like a directory that keeps another time.
  }
  drop_file(store);
  return std::nullopt;
}

}  // namespace

std::vector<SnapshotRef> newest_snapshots(const PackStore& store, std::size_t most) {
  const auto noted = settled_file(store);
  if (noted) {
    if (auto refs = read_noted(store, *noted, most)) return std::move(*refs);
  }
  // A current file that is long enough for the others stays. One that is not, or that names a ref
  // which is not there, is replaced.
  std::vector<SnapshotRef> refs = read_all_refs(store, !noted || most <= kNewestFast);
  if (refs.size() > most) refs.resize(most);
  return refs;
}

bool may_have_latest_members(const PackStore& store) {
  const auto noted = settled_file(store);
  return !noted || noted->has_latest_members;
}

void note_assigned_order(const PackStore& store, std::uint64_t before, std::uint64_t now) {
  assert(before < now);
  auto noted = read_file(store);
  if (!noted || noted->last_order != before) return;
  noted->last_order = now;
  try {
    write_file(store, *noted);
  } catch (const Error&) {
    // It states an earlier order.
  }
}

void change_refs_by_adding(const PackStore& store, const SnapshotRef& ref,
                           const std::function<void()>& change) {
  const auto lock = lock_orders(store);
  auto noted = lock != nullptr ? current_file(store) : std::nullopt;
  change();
  try {
    if (lock == nullptr) return drop_file(store);
    if (!noted) return write_first_file(store);
    const auto mark = mark_or_drop(store);
    if (!mark) return;
    noted->refs = *mark;
    add_entry(*noted, ref);
    write_file(store, *noted);
  } catch (const std::exception&) {
    drop_file(store);
  }
}

void change_refs_by_removing(const PackStore& store, const std::string& name,
                             const std::function<void()>& change,
                             const std::function<void()>& flush) {
  const auto lock = try_lock_orders(store, kRemovalPatience);
  auto noted = lock != nullptr ? current_file(store) : std::nullopt;
  change();
  if (lock == nullptr) drop_file(store);
  // Before the flush, which takes long: a change of another program meanwhile is seen below.
  const auto mark = noted ? mark_or_drop(store) : std::nullopt;
  flush();
  if (!mark) return;
  try {
    if (refs_state(store) != *mark) return;
    noted->refs = *mark;
    std::erase_if(noted->entries, [&](const Entry& entry) { return entry.name == name; });
    write_file(store, *noted);
  } catch (const std::exception&) {
    drop_file(store);
  }
}

}  // namespace vellum::store
