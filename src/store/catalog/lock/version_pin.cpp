#include "store/catalog/lock/version_pin.hpp"

#include <cassert>
#include <set>
#include <utility>

#include "base/fail.hpp"
#include "store/catalog/lock/lock_bytes.hpp"
#include "store/packs/former_file.hpp"

namespace vellum::store {

namespace {

using namespace std::chrono_literals;
constexpr auto kGcLockPatience = 30s;  // a gc reads the names for milliseconds

constexpr const char* kGcLockName = "gc.lock";

}  // namespace

std::shared_ptr<base::File> open_lock_file(PackStore& store, const std::string& name) {
  assert(!name.empty() && name.find('/') == std::string::npos);
  const std::string path = store.path() + "/" + name;
  try {
    store.fs().open(path, base::OpenMode::create_new);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
  }
  return store.fs().open(path, base::OpenMode::read_write);
}

std::optional<GcShared> GcShared::try_lock(PackStore& store) {
  if (store.gcs_waiting() != 0) return std::nullopt;
  try {
    auto file = open_lock_file(store, kGcLockName);
    if (!file->try_lock_shared()) return std::nullopt;
    return GcShared(std::move(file));
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    return std::nullopt;
  }
}

bool DeferredGcShared::lock() {
  if (!std::exchange(tried_, true)) lock_ = GcShared::try_lock(store_);
  assert(tried_);
  return lock_.has_value();
}

GcExclusive::GcExclusive(PackStore& store, std::chrono::milliseconds patience) {
  auto file = open_lock_file(store, kGcLockName);
  // A writer whose large commits follow each other closely would otherwise leave no gap.
  struct Waiting {
    std::atomic<int>& count;
    explicit Waiting(std::atomic<int>& c) : count(c) { ++count; }
    ~Waiting() {
      assert(count > 0);
      --count;
    }
  } const waiting(store.gcs_waiting());
  if (!lock_with_patience(patience, [&] { return file->try_lock_exclusive(); })) {
    fail(Errc::busy, "{}: another gc is at work, or a large commit is being written", store.path());
  }
  file_ = std::move(file);
}

// A waiting NamesExclusive has priority: otherwise new readers could block it without end.
NamesShared::NamesShared(PackStore& store) {
  const std::shared_ptr<base::File> file = store.open_superblock(base::OpenMode::read_only);
  bool held = false;
  file_ = file;
  try {
    held = lock_with_patience(kGcLockPatience, [&] {
      return !file->byte_locked(kTurnByte) && file->pin_byte(kNamesByte);
    });
  } catch (const Error&) {
    try {
      held = lock_with_patience(kGcLockPatience, [&] { return file->try_lock_shared(); });
    } catch (const Error&) {
      return;  // a file system without locks; gc cannot run there either
    }
  }
  if (!held) {
    fail(Errc::busy, "{}: a gc is looking at the names, and does not let go", store.path());
  }
}

namespace {

// Excludes gc until the last copy is destroyed; null on a file system without byte locks.
std::shared_ptr<const void> lock_out_gc(PackStore& store) {
  try {
    std::shared_ptr<base::File> file = store.open_superblock(base::OpenMode::read_only);
    if (file->pin_byte(kUnpinnedByte)) return file;
  } catch (const Error&) {
  }
  return nullptr;
}

}  // namespace

VersionPin::VersionPin(PackStore& store, NamesShared names, const format::Version& version) {
  assert(names.file_ != nullptr);
  if (version.runs.empty()) return;
  const format::RecordRef& root = version.runs.front().root;
  PackSet& packs = store.packs();
  try {
    // gc never changes remote packs. If only some of the version's packs are remote, gc keeps no
    // more than it finds from a pin of the newest root.
    bool is_partly_remote = false;
    for (const format::RunRef& run : version.runs) {
      packs.open(run.root.pack);
      is_partly_remote |= packs.is_remote(run.root.pack) != packs.is_remote(root.pack);
    }
    if (!is_partly_remote || !packs.is_remote(root.pack)) {
      pin_ = packs.pin(root.pack, root.offset_bytes);
      return;
    }
  } catch (const Error&) {
  }
  pin_ = lock_out_gc(store);
  if (pin_ == nullptr) pin_ = std::move(names.file_);
}

// Takes both kinds of locks: a process that cannot lock a byte locks the whole file.
NamesExclusive::NamesExclusive(PackStore& store, std::chrono::milliseconds patience,
                               UnpinnedVersions unpinned) {
  const std::shared_ptr<base::File> file = store.open_superblock(base::OpenMode::read_write);
  const auto lock = [&](const auto& try_lock) {
    if (lock_with_patience(patience, try_lock)) return;
    fail(Errc::busy,
         "{}: someone reads the whole store (verify, repair), or has a version open and could not "
         "pin it",
         store.path());
  };
  bool has_byte_locks = true;
  try {
    file->byte_locked(kTurnByte);
  } catch (const Error&) {
    has_byte_locks = false;
  }
  if (has_byte_locks) {
    lock([&] { return file->try_lock_byte(kTurnByte); });
    lock([&] { return file->try_lock_byte(kNamesByte); });
    if (unpinned == UnpinnedVersions::must_be_closed) {
      lock([&] { return file->try_lock_byte(kUnpinnedByte); });
    }
  }
  lock([&] { return file->try_lock_exclusive(); });
  file_ = file;
}

// A file does not report its own pins, so each is opened anew.
std::vector<RootPlace> pinned_roots(PackStore& store, const std::vector<std::uint64_t>& packs) {
  std::set<RootPlace> out;
  const PackPlaces& places = store.packs().places();
  const auto add = [&](std::uint64_t pack, const auto& open) {
    try {
      for (const std::uint64_t at : open()->pinned_bytes()) out.insert({pack, at});
    } catch (const Error& e) {
      // Its writer has just abandoned it, or it is not a pack.
      if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
    }
  };
  for (const std::uint64_t pack : packs) add(pack, [&] { return places.open(pack); });
  for (const FormerFile& former : former_files(store.fs(), places)) {
    add(former.pack, [&] { return store.fs().open(former.path, base::OpenMode::read_only); });
  }
  return {out.begin(), out.end()};
}

}  // namespace vellum::store
