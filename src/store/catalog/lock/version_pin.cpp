#include "store/catalog/lock/version_pin.hpp"

#include <cassert>
#include <set>
#include <utility>

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
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
    fail(
        Errc::busy,
        "{}: another gc is at work, or a pull, or a large commit is being written{}: wait until it "
        "ends",
        store.path(), base::lock_holders(file->path()));
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
    fail(Errc::busy, "{}: a gc is looking at the names, and does not let go{}", store.path(),
         base::lock_holders(file->path(), kTurnByte));
  }
}

namespace {

// Holds a byte of `vellum.store`, shared, until the last copy is destroyed. Null on a file system
// without byte locks.
std::shared_ptr<const void> hold_byte(PackStore& store, std::uint64_t byte) {
  try {
    std::shared_ptr<base::File> file = store.open_superblock(base::OpenMode::read_only);
    if (file->pin_byte(byte)) return file;
  } catch (const Error&) {
  }
  return nullptr;
}

// Null: the version cannot be pinned. gc never changes remote packs. If only some of the version's
// packs are remote, gc keeps no more than it finds from a pin of the newest root.
std::shared_ptr<const void> pin_root(PackSet& packs, const format::Version& version) {
  const format::RecordRef& root = version.runs.front().root;
  try {
    bool is_partly_remote = false;
    for (const format::RunRef& run : version.runs) {
      packs.open(run.root.pack);
      is_partly_remote |= packs.is_remote(run.root.pack) != packs.is_remote(root.pack);
    }
    if (is_partly_remote && packs.is_remote(root.pack)) return nullptr;
    return packs.pin(root.pack, root.offset_bytes);
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

VersionPin::VersionPin(PackStore& store, NamesShared names, const format::Version& version) {
  assert(names.file_ != nullptr);
  if (version.runs.empty()) return;
  struct Locks {
    std::shared_ptr<const void> pin, remote_reader;
  };
  auto locks = std::make_shared<Locks>();
  PackSet& packs = store.packs();
  if (packs.reaches_remote() && packs.are_files()) {
    locks->remote_reader = hold_byte(store, kRemoteReaderByte);
  }
  locks->pin = pin_root(packs, version);
  if (locks->pin == nullptr) locks->pin = hold_byte(store, kUnpinnedByte);
  if (locks->pin == nullptr) locks->pin = std::move(names.file_);
  pin_ = std::move(locks);
}

bool has_remote_readers(PackStore& store) {
  try {
    return !store.open_superblock(base::OpenMode::read_write)->try_lock_byte(kRemoteReaderByte);
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    return false;  // a file system without byte locks
  }
}

// Takes both kinds of locks: a process that cannot lock a byte locks the whole file.
NamesExclusive::NamesExclusive(PackStore& store, std::chrono::milliseconds patience,
                               UnpinnedVersions unpinned) {
  const std::shared_ptr<base::File> file = store.open_superblock(base::OpenMode::read_write);
  const auto lock = [&](std::optional<std::uint64_t> byte, const char* problem) {
    const bool locked = lock_with_patience(patience, [&] {
      return byte.has_value() ? file->try_lock_byte(*byte) : file->try_lock_exclusive();
    });
    if (locked) return;
    fail(Errc::busy, "{}: {}{}: wait until it ends, or end it", store.path(), problem,
         base::lock_holders(file->path(), byte));
  };
  constexpr const char* kReads =
      "a process reads the whole store (verify, repair), or has a version open and could not pin "
      "it";
  constexpr const char* kUnpinned = "a process has a version open and could not pin it";
  constexpr const char* kReadsRemote =
      "a process has a version open since before the packs were fetched";
  bool has_byte_locks = true;
  try {
    file->byte_locked(kTurnByte);
  } catch (const Error&) {
    has_byte_locks = false;
  }
  if (has_byte_locks) {
    lock(kTurnByte, "another gc or pull reads the names");
    lock(kNamesByte, kReads);
    if (unpinned == UnpinnedVersions::must_be_closed) lock(kUnpinnedByte, kUnpinned);
    if (unpinned == UnpinnedVersions::must_be_closed && store.packs().list_remote().empty()) {
      lock(kRemoteReaderByte, kReadsRemote);
    }
  }
  lock(std::nullopt, kReads);
  file_ = file;
}

// A file does not report its own pins, so each is opened again.
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
