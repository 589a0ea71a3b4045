#include "store/lease.hpp"

#include <algorithm>
#include <thread>

#include "store/util.hpp"

namespace vellum::store {

namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 30s;   // a gc looks for milliseconds
constexpr auto kGcPatience = 5s;  // those who hold names for long do so for minutes

template <typename TryLock>
bool lock_with_patience(std::chrono::seconds patience, const TryLock& try_lock) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (auto pause = 50us; !try_lock();
       pause = std::min<std::chrono::microseconds>(pause * 2, 5ms)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

std::shared_ptr<base::File> open_gc_lock(StoreCore& store) {
  const std::string path = store.path() + "/gc.lock";
  try {
    store.fs().open(path, base::OpenMode::create_new);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
  }
  return store.fs().open(path, base::OpenMode::read_write);
}

}  // namespace

Lease keep_gc_out(StoreCore& store) {
  try {
    auto file = open_gc_lock(store);
    return file->try_lock_shared() ? file : nullptr;
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    return nullptr;
  }
}

Lease keep_gc_for_us(StoreCore& store) {
  auto file = open_gc_lock(store);
  if (!lock_with_patience(kGcPatience, [&] { return file->try_lock_exclusive(); })) {
    fail(Errc::busy, "{}: another gc is at work, or a large commit is being written", store.path());
  }
  return file;
}

Lease hold_names(StoreCore& store) {
  std::shared_ptr<base::File> file =
      store.fs().open(store.superblock_path(), base::OpenMode::read_only);
  bool held = false;
  try {
    held = lock_with_patience(kPatience, [&] { return file->try_lock_shared(); });
  } catch (const Error&) {
    return file;  // a file system without locks; gc cannot run there either
  }
  if (!held) fail(Errc::busy, "{}: a gc is looking at the names, and does not end", store.path());
  return file;
}

Lease keep_version(StoreCore& store, Lease names, const format::Version& version) {
  if (version.runs.empty()) return nullptr;
  const format::RecordRef& root = version.runs.front().root;
  try {
    return store.packs().mark(root.pack, root.offset_bytes);
  } catch (const Error&) {
    return names;
  }
}

KeptVersion resolve_kept(StoreCore& store, const std::string& name) {
  Lease names = hold_names(store);
  KeptVersion kept{resolve_version(store, name), nullptr};
  kept.lease = keep_version(store, std::move(names), kept.version.version);
  return kept;
}

Lease hold_names_alone(StoreCore& store) {
  std::shared_ptr<base::File> file =
      store.fs().open(store.superblock_path(), base::OpenMode::read_only);
  if (!lock_with_patience(kGcPatience, [&] { return file->try_lock_exclusive(); })) {
    fail(Errc::busy,
         "{}: someone reads the whole store (verify, repair), or has a version open and could not "
         "mark it",
         store.path());
  }
  return file;
}

std::vector<RootPlace> marked_roots(StoreCore& store, const std::vector<std::uint64_t>& packs) {
  std::vector<RootPlace> out;
  for (const std::uint64_t pack : packs) {
    try {
      // Afresh: a file does not see marks of its own.
      const auto file = store.packs().places().open(pack);
      for (const std::uint64_t at : file->marked_bytes()) out.push_back({pack, at});
    } catch (const Error& e) {
      // Given up by its writer just now; or no pack at all.
      if (e.code() != Errc::not_found && e.code() != Errc::damaged) throw;
    }
  }
  return out;
}

}  // namespace vellum::store
