#include "store/catalog/lock/version_pin.hpp"

#include <utility>

#include "base/fail.hpp"
#include "store/catalog/lock/lock_bytes.hpp"
#include "store/catalog/lock/patience.hpp"

namespace vellum::store {

namespace {

using namespace std::chrono_literals;
constexpr auto kGcLockPatience = 30s;  // a gc looks at names for milliseconds

constexpr const char* kGcLockName = "gc.lock";

}  // namespace

std::shared_ptr<base::File> open_lock_file(PackStore& store, const std::string& name) {
  const std::string path = store.path() + "/" + name;
  try {
    store.fs().open(path, base::OpenMode::create_new);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
  }
  return store.fs().open(path, base::OpenMode::read_write);
}

VersionPin keep_gc_out(PackStore& store) {
  if (store.gcs_waiting() != 0) return nullptr;
  try {
    auto file = open_lock_file(store, kGcLockName);
    return file->try_lock_shared() ? file : nullptr;
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    return nullptr;
  }
}

bool GcKeptOut::hold() {
  if (!std::exchange(tried_, true)) pin_ = keep_gc_out(store_);
  return pin_ != nullptr;
}

VersionPin keep_gc_for_us(PackStore& store, std::chrono::milliseconds patience) {
  auto file = open_lock_file(store, kGcLockName);
  // A writer whose large commits follow each other closely would otherwise leave no gap.
  struct Waiting {
    std::atomic<int>& count;
    explicit Waiting(std::atomic<int>& c) : count(c) { ++count; }
    ~Waiting() { --count; }
  } const waiting(store.gcs_waiting());
  if (!lock_with_patience(patience, [&] { return file->try_lock_exclusive(); })) {
    fail(Errc::busy, "{}: another gc is at work, or a large commit is being written", store.path());
  }
  return file;
}

// A caller that waits to be alone goes first: endless readers would keep it waiting permanently.
VersionPin hold_names(PackStore& store) {
  const std::shared_ptr<base::File> file = store.open_superblock(base::OpenMode::read_only);
  bool held = false;
  try {
    held = lock_with_patience(kGcLockPatience, [&] {
      return !file->byte_locked(kTurnByte) && file->pin_byte(kNamesByte);
    });
  } catch (const Error&) {
    try {
      held = lock_with_patience(kGcLockPatience, [&] { return file->try_lock_shared(); });
    } catch (const Error&) {
      return file;  // a file system without locks; gc cannot run there either
    }
  }
  if (!held) {
    fail(Errc::busy, "{}: a gc is looking at the names, and does not let go", store.path());
  }
  return file;
}

VersionPin keep_version(PackStore& store, VersionPin names, const format::Version& version) {
  if (version.runs.empty()) return nullptr;
  const format::RecordRef& root = version.runs.front().root;
  PackSet& packs = store.packs();
  try {
    // What is elsewhere, gc does not touch. Of a version that is there in part, it keeps what it
    // finds by a pin of the newest root alone.
    bool is_in_part = false;
    for (const format::RunRef& run : version.runs) {
      packs.open(run.root.pack);
      is_in_part |= packs.is_remote(run.root.pack) != packs.is_remote(root.pack);
    }
    if (is_in_part && packs.is_remote(root.pack)) return names;
    return packs.pin(root.pack, root.offset_bytes);
  } catch (const Error&) {
    return names;
  }
}

// Takes both kinds of locks: a caller that cannot lock a byte holds the whole file.
VersionPin hold_names_alone(PackStore& store, std::chrono::milliseconds patience) {
  const std::shared_ptr<base::File> file = store.open_superblock(base::OpenMode::read_write);
  const auto lock = [&](const auto& try_lock) {
    if (lock_with_patience(patience, try_lock)) return;
    fail(Errc::busy,
         "{}: someone reads the whole store (verify, repair), or has a version open and could not "
         "pin it",
         store.path());
  };
  try {
    file->byte_locked(kTurnByte);
  } catch (const Error&) {  // a file system without locks of bytes
    lock([&] { return file->try_lock_exclusive(); });
    return file;
  }
  lock([&] { return file->try_lock_byte(kTurnByte); });
  lock([&] { return file->try_lock_byte(kNamesByte); });
  lock([&] { return file->try_lock_exclusive(); });
  return file;
}

std::vector<RootPlace> pinned_roots(PackStore& store, const std::vector<std::uint64_t>& packs) {
  std::vector<RootPlace> out;
  for (const std::uint64_t pack : packs) {
    try {
      // Opened anew, because a file does not see its own pins.
      const auto file = store.packs().places().open(pack);
      for (const std::uint64_t at : file->pinned_bytes()) out.push_back({pack, at});
    } catch (const Error& e) {
      // Its writer gave it up just now, or it is no pack at all.
      if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
    }
  }
  return out;
}

}  // namespace vellum::store
