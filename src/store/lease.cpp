#include "store/lease.hpp"

#include <unistd.h>

#include <random>
#include <thread>

#include "store/util.hpp"

namespace vellum::store {

namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 30s;   // a gc looks for milliseconds
constexpr auto kGcPatience = 5s;  // those who hold names for long do so for minutes
constexpr std::string_view kMarkSuffix = ".mark";

// A mark in `readers/`, and its lock. A forked child has neither.
class Mark {
 public:
  Mark(base::Fs& fs, std::string path, std::span<const std::byte> bytes)
      : fs_(fs), path_(std::move(path)), file_(fs_.open(path_, base::OpenMode::create_new)) {
    try {
      if (!file_->try_lock_exclusive()) fail(Errc::busy, "{}: locked by someone else", path_);
      file_->pwrite(bytes, 0);
    } catch (...) {
      remove();
      throw;
    }
  }
  ~Mark() {
    if (::getpid() == owner_) remove();
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  void remove() noexcept {
    try {
      fs_.unlink(path_);
    } catch (...) {
      // Its lock goes with us: the next gc removes it.
    }
  }
  base::Fs& fs_;
  std::string path_;
  std::unique_ptr<base::File> file_;
  pid_t owner_ = ::getpid();
};

std::string new_mark_path(const StoreCore& store) {
  thread_local std::mt19937_64 random{std::random_device{}()};  // a fork's goes on with the same
  return fmt::format("{}/{}-{:016x}{}", store.readers_directory(), ::getpid(), random(),
                     kMarkSuffix);
}

void make_readers_directory(StoreCore& store) {
  try {
    store.fs().make_directory(store.readers_directory());
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
  }
}

// Its owner may be just removing it.
void unlink_if_there(base::Fs& fs, const std::string& path) {
  try {
    fs.unlink(path);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
}

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

}  // namespace

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
  format::SnapshotRef ref;
  ref.name = ref.branch = "open";
  ref.version = version;
  ref.version.message.clear();
  const auto bytes = format::encode_snapshot_ref(ref, store.superblock().store_id);
  try {
    make_readers_directory(store);
    return std::make_shared<const Mark>(store.fs(), new_mark_path(store), bytes);
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
    fail(
        Errc::busy,
        "{}: someone reads the whole store (verify, repair), or has a version open and could leave "
        "no mark in {}",
        store.path(), store.readers_directory());
  }
  return file;
}

std::vector<format::Version> kept_versions(StoreCore& store, bool look_only) {
  std::vector<format::Version> out;
  base::Fs& fs = store.fs();
  if (!fs.exists(store.readers_directory())) return out;
  for (const auto& entry : fs.list(store.readers_directory())) {
    if (!entry.is_regular_file || !entry.name.ends_with(kMarkSuffix)) continue;
    const std::string path = store.readers_directory() + "/" + entry.name;
    std::unique_ptr<base::File> file;
    try {
      file = fs.open(path, base::OpenMode::read_only);
    } catch (const Error& e) {
      if (e.code() == Errc::not_found) continue;  // closed just now
      throw;
    }
    if (file->try_lock_exclusive()) {
      if (!look_only) unlink_if_there(fs, path);
      continue;
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(
        std::min<std::uint64_t>(file->size_bytes(), format::kMaxSnapshotRefBytes)));
    file->pread(bytes, 0);
    format::SnapshotRef ref;
    if (const char* problem =
            format::decode_snapshot_ref(bytes, store.superblock().store_id, ref)) {
      if (look_only) continue;  // nobody keeps its owner from writing it just now
      fail(Errc::damaged, "{}: {}", path, problem);
    }
    out.push_back(std::move(ref.version));
  }
  return out;
}

}  // namespace vellum::store
