#include "store/catalog/store_directory.hpp"

#include <algorithm>
#include <cassert>
#include <random>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "store/catalog/key_file.hpp"
#include "store/catalog/lock/lock_bytes.hpp"
#include "store/packs/header_error.hpp"

namespace vellum::store {

namespace {

constexpr std::uint64_t kMaxSuperblockBytes = 64u << 10;
constexpr const char* kDirectories[] = {"branches", "snapshots", "packs", "tmp"};
constexpr std::chrono::seconds kCreationPatience{30};

format::Uuid random_uuid() {
  std::random_device device;
  format::Uuid id;
  for (auto& b : id) b = static_cast<std::byte>(device());
  return id;
}

// Whether a crash during create() left this: empty directories, key slots without a superblock, and
// such files in tmp that never got their names. The directories are older than the slots: slots
// without them are a user's copy.
bool is_unfinished_store(base::Fs& fs, const std::string& path) {
  for (const auto& entry : fs.list(path)) {
    if (entry.name == kKeysName && fs.is_directory(path + "/tmp")) continue;
    const bool ours = std::find(std::begin(kDirectories), std::end(kDirectories), entry.name) !=
                      std::end(kDirectories);
    if (!ours || !entry.is_directory) return false;
    for (const auto& inner : fs.list(path + "/" + entry.name)) {
      const bool unfinished =
          inner.name.starts_with(kSuperblockName) || inner.name.starts_with(kKeysName);
      if (entry.name != "tmp" || !unfinished) return false;
    }
  }
  return true;
}

// The lock of the process that creates an encrypted store: a flock(2) of a file in `tmp`, which exists
// only during the creation. What a crash leaves of it does not hinder the next creator.
class CreationLock {
 public:
  // Waits for the holder. Errc::busy if that takes long. `path`: of the lock's file.
  CreationLock(base::Fs& fs, std::string path);
  ~CreationLock();  // removes the file while it is still locked
  CreationLock(const CreationLock&) = delete;
  CreationLock& operator=(const CreationLock&) = delete;

 private:
  bool try_lock();
  base::Fs& fs_;
  const std::string path_;
  std::unique_ptr<base::File> file_;
};

CreationLock::CreationLock(base::Fs& fs, std::string path) : fs_(fs), path_(std::move(path)) {
  if (!lock_with_patience(kCreationPatience, [this] { return try_lock(); })) {
    fail(Errc::busy, "{}: somebody else is creating that store", path_);
  }
}

CreationLock::~CreationLock() { base::unlink_quietly(fs_, path_); }

// The holder before removes the file: a lock of the removed one excludes nobody.
bool CreationLock::try_lock() {
  try {
    fs_.open(path_, base::OpenMode::create_new);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
  }
  try {
    file_ = fs_.open(path_, base::OpenMode::read_write);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    return false;
  }
  return file_->try_lock_exclusive() && !file_->replaced();
}

}  // namespace

std::shared_ptr<StoreDirectory> StoreDirectory::create(base::Fs& fs, const std::string& given_path,
                                                       format::Superblock options) {
  options.store_id = random_uuid();
  options.created_ns = base::wall_clock_ns();
  return create_copy(fs, given_path, options);
}

namespace {

std::vector<std::byte> checked_superblock(const std::string& path,
                                          const format::Superblock& superblock) {
  auto bytes = format::encode_superblock(superblock);
  format::Superblock checked;
  if (format::decode_superblock(bytes, checked) == format::SuperblockStatus::ok) return bytes;
  fail(Errc::invalid_argument, "{}: a store option is outside its range", path);
}

void require_unfinished(base::Fs& fs, const std::string& path) {
  if (is_unfinished_store(fs, path)) return;
  fail(Errc::already_exists, "{}: exists and is not an empty directory", path);
}

void make_directories(base::Fs& fs, const std::string& path) {
  if (!base::ensure_directory(fs, path)) require_unfinished(fs, path);
  for (const char* name : kDirectories) base::ensure_directory(fs, path + "/" + name);
  fs.sync_directory(path);
  fs.sync_directory(base::parent_of(path));
}

// The slots are durable before the superblock, which is the commit point. Two creators would mix
// them: one at a time, from the check that there is no store.
void publish_encrypted(base::Fs& fs, const std::string& path, std::span<const std::byte> slots,
                       std::span<const std::byte> superblock) {
  const CreationLock lock(fs, path + "/tmp/" + kKeysName + ".lock");
  require_unfinished(fs, path);
  base::publish_file(fs, path + "/tmp", path, kKeysName, slots, true);
  const std::string file = path + "/" + kKeysName;
  if (!std::ranges::equal(base::read_whole(fs, file, format::kMaxKeySlotsBytes), slots)) {
    fail(Errc::io, "{}: reads back other bytes than were written", file);
  }
  base::publish_file(fs, path + "/tmp", path, kSuperblockName, superblock, false);
}

}  // namespace

// The data key exists only in its slot, and in this process until it returns.
std::shared_ptr<StoreDirectory> StoreDirectory::create_encrypted(base::Fs& fs,
                                                                 const std::string& given_path,
                                                                 format::Superblock options,
                                                                 const KeySource& source) {
  const std::string path = base::without_end_slashes(given_path);
  options.store_id = random_uuid();
  options.created_ns = base::wall_clock_ns();
  options.encrypted = true;
  const auto bytes = checked_superblock(path, options);
  const base::Secret data_key = base::Secret::random(base::kKeyBytes);
  const auto slots = first_key_slot(source, bytes, options.store_id, data_key);
  return create_encrypted_copy(fs, path, options, slots,
                               std::make_shared<const base::StoreKeys>(data_key));
}

std::shared_ptr<StoreDirectory> StoreDirectory::create_encrypted_copy(
    base::Fs& fs, const std::string& given_path, const format::Superblock& superblock,
    std::span<const std::byte> key_slots, std::shared_ptr<const base::StoreKeys> keys) {
  assert(superblock.encrypted && keys != nullptr);
  const std::string path = base::without_end_slashes(given_path);
  const auto bytes = checked_superblock(path, superblock);
  make_directories(fs, path);
  publish_encrypted(fs, path, key_slots, bytes);
  return std::shared_ptr<StoreDirectory>(
      new StoreDirectory(fs, path, fs.open(path + "/" + kSuperblockName, base::OpenMode::read_only),
                         superblock, std::move(keys), nullptr));
}

std::shared_ptr<StoreDirectory> StoreDirectory::create_copy(base::Fs& fs,
                                                            const std::string& given_path,
                                                            const format::Superblock& superblock,
                                                            PlainStores plain) {
  const std::string path = base::without_end_slashes(given_path);
  if (superblock.encrypted) {
    fail(Errc::unsupported, "{}: a copy of an encrypted store needs its keys", path);
  }
  if (plain != PlainStores::all) require_may_be_plain(path);
  const auto bytes = checked_superblock(path, superblock);
  make_directories(fs, path);
  // The commit point: without the superblock the directory is not a store.
  base::publish_file(fs, path + "/tmp", path, kSuperblockName, bytes, false);
  return open(fs, path, nullptr, nullptr, plain);
}

namespace {

// Null: of a plain store. `given`: those of an earlier opening, or null.
std::shared_ptr<const base::StoreKeys> keys_of(base::Fs& fs, const std::string& path,
                                               const format::Superblock& superblock,
                                               std::span<const std::byte> bytes,
                                               std::shared_ptr<const base::StoreKeys> given,
                                               PlainStores plain) {
  if (!superblock.encrypted) {
    if (plain != PlainStores::all) require_may_be_plain(path);
    if (given == nullptr) return nullptr;
    fail(Errc::wrong_key, "{}: the store was encrypted, and a plain one is in its place", path);
  }
  if (given != nullptr) return given;
  const auto locked = read_locked_key(fs, path, bytes, superblock.store_id);
  return std::make_shared<const base::StoreKeys>(unlock(locked, path));
}

}  // namespace

std::shared_ptr<StoreDirectory> StoreDirectory::open(base::Fs& fs, const std::string& given_path,
                                                     std::shared_ptr<RemotePacks> remote,
                                                     std::shared_ptr<const base::StoreKeys> keys,
                                                     PlainStores plain) {
  const std::string path = base::without_end_slashes(given_path);
  if (!fs.exists(path)) fail(Errc::not_found, "{}: no such directory", path);
  const std::string file = path + "/" + kSuperblockName;
  if (!fs.exists(file)) fail(Errc::not_a_store, "{}: not a Vellum store", path);
  auto opened = fs.open(file, base::OpenMode::read_only);
  std::vector<std::byte> bytes(std::min(opened->size_bytes(), kMaxSuperblockBytes));
  opened->pread(bytes, 0);
  format::Superblock superblock;
  switch (format::decode_superblock(bytes, superblock)) {
    case format::SuperblockStatus::ok:
      break;
    case format::SuperblockStatus::not_a_store:
      fail(Errc::not_a_store, "{}: not a Vellum store: {} is something else", path, file);
    case format::SuperblockStatus::newer_format:
      fail_newer(file, bytes);
    case format::SuperblockStatus::corrupted:
      fail(Errc::corrupted, "{}: the superblock is corrupted", file);
  }
  // A link instead of a directory would lead out of the store.
  const auto entries = fs.list(path);
  for (const char* name : kDirectories) {
    const auto at = std::find_if(entries.begin(), entries.end(),
                                 [&](const base::DirEntry& e) { return e.name == name; });
    if (at == entries.end()) fail(Errc::corrupted, "{}/{}: missing", path, name);
    if (!at->is_directory) fail(Errc::corrupted, "{}/{}: not a directory", path, name);
  }
  keys = keys_of(fs, path, superblock, bytes, std::move(keys), plain);
  return std::shared_ptr<StoreDirectory>(new StoreDirectory(fs, path, std::move(opened), superblock,
                                                            std::move(keys), std::move(remote)));
}

}  // namespace vellum::store
