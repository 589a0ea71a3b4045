#include "remote/session/known_remotes.hpp"

#include <algorithm>
#include <filesystem>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "base/files/real_path.hpp"
#include "base/try_to.hpp"
#include "format/wire/whole_file.hpp"
#include "remote/engine/probe.hpp"
#include "remote/engine/url.hpp"
#include "remote/objects/lock_note.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/session/remote.hpp"
#include "remote/session/remote_keys.hpp"
#include "remote/session/remote_lock.hpp"

namespace vellum::remote {
namespace {

constexpr const char* kSuffix = ".remote";
constexpr const char* kReplicaName = "replica";
constexpr const char* kWriterName = "writer";
constexpr format::WholeFileKind kWriterFile{"VLMWRTR\n", 64, "not the id of a writer",
                                            "too large for the id of a writer"};

std::string path_of(const store::StoreDirectory& store, const std::string& name) {
  return remotes_directory(store) + "/" + name + kSuffix;
}

void require_remote_name(const std::string& name) {
  const char* problem = format::name_problem(name);
  if (problem != nullptr) fail(Errc::invalid_argument, "remote '{}': {}", name, problem);
}

}  // namespace

void require_url(const std::string& url) {
  if (!parse_remote_url(url).at.empty()) {
    fail(Errc::invalid_argument, "'{}': a store's remote is not one at an earlier time (at=)", url);
  }
  if (url.size() > kMaxUrlBytes) fail(Errc::invalid_argument, "the URL is too long");
}

namespace {

// Whether `outer` is `path`, or a directory above it, by any name.
bool is_at_or_above(const std::string& outer, const std::filesystem::path& path) {
  for (std::filesystem::path at = path;; at = at.parent_path()) {
    std::error_code ignored;  // one of them does not exist
    if (at == outer || std::filesystem::equivalent(at, outer, ignored)) return true;
    if (!at.has_relative_path()) return false;
  }
}

}  // namespace

void require_outside(const store::StoreDirectory& store, const std::string& url) {
  const RemoteUrl parsed = parse_remote_url(url);
  if (parsed.kind != RemoteUrl::EngineKind::directory) return;
  const std::string there = base::real_path(parsed.path), here = base::real_path(store.path());
  if (!is_at_or_above(there, here) && !is_at_or_above(here, there)) return;
  fail(Errc::invalid_argument,
       "{}: a remote and its store {} are two directories, and neither is in the other", url,
       store.path());
}

void require_same_store(ObjectStore& objects, const store::StoreDirectory& store) {
  try {
    require_same_superblock(read_superblock(objects), superblock_there(objects, store),
                            objects.url());
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
}

std::optional<ObjectsKeyEntry> key_entry_of(const ObjectStore& objects) {
  const ObjectsKey* const key = objects.objects_key();
  if (key == nullptr) return std::nullopt;
  return ObjectsKeyEntry{store::key_fingerprint_bytes(key->keys->data_key()), key->slots};
}

bool has_encrypted_remote(const store::StoreDirectory& store) {
  bool out = false;
  base::try_to([&] {
    for (const std::string& name : remote_names(store)) {
      out = out || read_remote_file(store, name).objects_key.has_value();
    }
  });
  return out;
}

std::string remotes_directory(const store::StoreDirectory& store) {
  return store.path() + "/" + kRemotesDirectoryName;
}

void make_remotes_directory(store::StoreDirectory& store) {
  base::ensure_directory(store.fs(), remotes_directory(store));
  store.fs().sync_directory(store.path());
}

void write_remote_file(store::StoreDirectory& store, const std::string& name,
                       const RemoteFile& file, bool replace) {
  make_remotes_directory(store);
  base::publish_file(store.fs(), store.tmp_directory(), remotes_directory(store), name + kSuffix,
                     encode_remote_file(file, store.file_seal()), replace);
}

std::vector<std::string> remote_names(const store::StoreDirectory& store) {
  std::vector<std::string> out;
  if (!store.fs().exists(remotes_directory(store))) return out;
  for (const auto& entry : store.fs().list(remotes_directory(store))) {
    if (!entry.is_regular_file || !entry.name.ends_with(kSuffix)) continue;
    out.push_back(entry.name.substr(0, entry.name.size() - std::string_view(kSuffix).size()));
  }
  return out;
}

RemoteFile read_remote_file(const store::StoreDirectory& store, const std::string& name) {
  require_remote_name(name);
  const std::string path = path_of(store, name);
  if (!store.fs().exists(path)) {
    fail(Errc::not_found, "{} has no remote '{}': `vellum remote add` adds it", store.path(), name);
  }
  RemoteFile out;
  const auto bytes = base::read_whole(store.fs(), path, kMaxRemoteFileBytes);
  const char* problem = decode_remote_file(bytes, store.file_seal(), out);
  if (problem != nullptr) fail(Errc::corrupted, "{}: {}", path, problem);
  return out;
}

namespace {

std::string writer_path(const store::StoreDirectory& store) {
  return remotes_directory(store) + "/" + kWriterName;
}

WriteId read_writer(const store::StoreDirectory& store) {
  const auto bytes =
      base::read_whole(store.fs(), writer_path(store), kWriterFile.max_bytes + format::kSealBytes);
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  const char* problem = open_whole_file(kWriterFile, bytes, store.file_seal(), opened, body);
  WriteId out{};
  if (problem == nullptr && body.size() != out.size()) problem = "malformed";
  if (problem != nullptr) fail(Errc::corrupted, "{}: {}", writer_path(store), problem);
  std::ranges::copy(body, out.begin());
  return out;
}

// Older versions of Vellum have an id for each remote.
WriteId first_writer(const store::StoreDirectory& store) {
  const auto names = remote_names(store);
  return names.empty() ? random_write_id() : read_remote_file(store, names.front()).writer;
}

// The permanent id of the store at all remotes: it identifies its own pushes under any name or URL.
WriteId writer_of(store::StoreDirectory& store) {
  if (store.fs().exists(writer_path(store))) return read_writer(store);
  make_remotes_directory(store);
  try {
    base::publish_file(store.fs(), store.tmp_directory(), remotes_directory(store), kWriterName,
                       encode_whole_file(kWriterFile, first_writer(store), store.file_seal()),
                       false);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
  }
  return read_writer(store);
}

}  // namespace

void add_remote_file(store::StoreDirectory& store, const std::string& name, const std::string& url,
                     bool one_writer, std::optional<ObjectsKeyEntry> objects_key,
                     std::optional<RemoteLock> lock) {
  require_remote_name(name);
  require_url(url);
  RemoteFile file;
  file.url = url;
  file.writer = writer_of(store);
  file.one_writer = one_writer;
  file.objects_key = std::move(objects_key);
  file.lock = lock;
  try {
    write_remote_file(store, name, file, false);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
    fail(Errc::already_exists, "{} already has a remote '{}'", store.path(), name);
  }
}

namespace {

// A plain remote that has lost its superblock gets that again from its store. And what an encrypted
// one cannot open would stay there, in clear, for ever: its gc sees only its own objects.
void require_empty(ObjectStore& objects) {
  for (const char* const prefix :
       {kHeadPrefix, kPiecePrefix, kListPrefix, kNamesPrefix, kHoldPrefix, kNewestKey}) {
    const auto found = objects.list(prefix, 1);
    if (found.empty()) continue;
    fail(
        Errc::wrong_key,
        "{}: there are objects of a remote without its superblock, such as {}: choose another URL, "
        "or remove them",
        objects.url(), found.front().key);
  }
}

// The remote that is there, opened; null: there is none yet.
std::shared_ptr<ObjectStore> existing_encrypted(const std::shared_ptr<ObjectStore>& objects,
                                                const store::StoreDirectory& store) {
  RemoteSuperblock there;
  try {
    there = read_superblock(*objects);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    require_empty(*objects);
    return nullptr;
  }
  if (!there.has_keys()) {
    fail(Errc::wrong_key, "{}: there is a remote that is not encrypted: choose another URL",
         objects->url());
  }
  require_same_superblock(there, {store.superblock(), there.objects_key}, objects->url());
  try {
    return unlock_remote(objects, there).objects;
  } catch (const Error& e) {
    if (e.code() != Errc::wrong_key || newest_number_at(*objects).has_value()) throw;
    // Its creation may have been interrupted before the slots were its own.
    fail(Errc::wrong_key,
         "{}; it has no versions yet: if nobody has a secret of it, remove {} and {}", e.what(),
         kSuperblockKey, kKeySlotsKey);
  }
}

}  // namespace

namespace {

void require_lockable(ObjectStore& objects, std::chrono::seconds duration) {
  if (duration.count() < 0 || duration > kMaxLock) {
    fail(Errc::invalid_argument, "the duration of locks is at most {} days",
         std::chrono::duration_cast<std::chrono::days>(kMaxLock).count());
  }
  lock_puts(objects, duration);
  objects.versions()->require_lock();
}

// The lock that the store notes. One that another store has put there counts, too: the longer one.
std::optional<RemoteLock> lock_of_new(ObjectStore& objects, const store::StoreDirectory& store,
                                      std::chrono::seconds wanted) {
  const Remote remote(objects, store.store_seal());
  std::vector<std::string> doubts;
  const auto there =
      objects.versions() == nullptr ? std::nullopt : credible_lock_note(remote, &doubts);
  if (wanted.count() == 0 && !doubts.empty()) {
    fail(Errc::invalid_argument, "{}; choose the duration (--lock)", doubts.front());
  }
  const auto duration = std::max(wanted, there.value_or(std::chrono::seconds(0)));
  if (duration.count() == 0) return std::nullopt;
  lock_puts(objects, duration);
  if (wanted > there.value_or(std::chrono::seconds(0))) put_lock_note(remote, wanted);
  // Objects that are there already are looked at by the next push.
  const bool is_empty = !newest_number_at(objects).has_value();
  return RemoteLock{duration,
                    is_empty ? base::nanoseconds_of(objects.versions()->now()) : std::int64_t{0}};
}

}  // namespace

bool add_remote(store::StoreDirectory& store, const std::string& name, const std::string& url,
                const AddRemoteOptions& options) {
  require_remote_name(name);
  if (store.fs().exists(path_of(store, name))) {
    fail(Errc::already_exists, "{} already has a remote '{}'", store.path(), name);
  }
  require_url(url);
  require_outside(store, url);
  std::shared_ptr<ObjectStore> objects = open_object_store(store.fs(), url), existing;
  if (!options.encrypt) {
    if (!store.is_encrypted()) store::require_may_be_plain(url);
    require_same_store(*objects, store);
  } else if (store.is_encrypted()) {
    fail(Errc::unsupported, "{}: the store is encrypted, and its remotes are, with its key",
         store.path());
  } else {
    existing = existing_encrypted(objects, store);  // an error precedes the probe
  }
  if (options.lock.count() != 0) require_lockable(*objects, options.lock);
  const ProbeResult probe = probe_conditional_writes(*objects);
  if (!probe.one_creator_wins() && !options.one_writer) {
    fail(Errc::unsupported,
         "{}: of several creators of an object, not just one won ({} of {} rounds): two stores "
         "that push would lose versions. --one-writer lets only this store push, to a new remote",
         objects->url(), probe.several_won + probe.none_won + probe.other_content, probe.rounds);
  }
  if (options.lock.count() != 0) lock_puts(*objects, options.lock);  // also its key slots
  if (existing != nullptr) {
    objects = existing;
  } else if (options.encrypt) {
    objects = create_objects_key(objects, store, options.key);
  }
  const auto lock = lock_of_new(*objects, store, options.lock);
  add_remote_file(store, name, url, options.one_writer, key_entry_of(*objects), lock);
  return probe.one_creator_wins();
}

namespace {

// Whether the newest head there is the store's. Unless `is_known`, Errc::corrupted if it is not
// readable. Errors of another store's head.
bool has_own_head(ObjectStore& objects, const store::StoreDirectory& store, bool is_known) {
  try {
    return Remote(objects, store.store_seal()).newest_head().head.number != 0;
  } catch (const Error& e) {
    if (!is_known || (e.code() != Errc::corrupted && e.code() != Errc::not_found)) throw;
    return false;
  }
}

// Nullopt: there is none. True: it was damaged, and is put again. Its slots stay.
std::optional<bool> mend_superblock(ObjectStore& objects, const store::StoreDirectory& store,
                                    bool is_known) {
  const RemoteSuperblock ours = superblock_there(objects, store);
  try {
    require_same_superblock(read_superblock(objects), ours, objects.url());
    return false;
  } catch (const Error& e) {
    if (e.code() == Errc::not_found) return std::nullopt;
    if (e.code() != Errc::corrupted && e.code() != Errc::not_a_store) throw;
    if (!has_own_head(objects, store, is_known) && !is_known) throw;
  }
  objects.put(kSuperblockKey, encode_remote_superblock(ours));
  return true;
}

}  // namespace

bool restore_superblock(ObjectStore& objects, const store::StoreDirectory& store,
                        std::span<const std::byte> slots, bool is_known) {
  const RemoteSuperblock ours = superblock_there(objects, store);
  if (const auto was_damaged = mend_superblock(objects, store, is_known)) return *was_damaged;
  // The slots come first: a remote with an encrypted superblock has them. They may be another
  // store's, whose first push did not go on: those of the superblock replace them.
  if (ours.has_keys()) objects.put_if_absent(kKeySlotsKey, slots);
  if (!objects.put_if_absent(kSuperblockKey, encode_remote_superblock(ours))) {
    require_same_superblock(read_superblock(objects), ours, objects.url());
    return false;
  }
  if (ours.has_keys()) objects.put(kKeySlotsKey, slots);
  return false;
}

std::string know_remote(store::StoreDirectory& store, const std::string& url) {
  const auto names = remote_names(store);
  const RemoteUrl place = parse_remote_url(url);
  for (const std::string& name : names) {
    if (is_same_place(parse_remote_url(read_remote_file(store, name).url), place)) return name;
  }
  std::string name = kReplicaName;
  for (int n = 2; std::ranges::count(names, name) != 0; ++n) {
    name = kReplicaName + std::to_string(n);
  }
  mend_superblock(*open_object_store(store.fs(), url), store, false);
  add_remote(store, name, url, AddRemoteOptions());
  return name;
}

void remove_remote_file(store::StoreDirectory& store, const std::string& name) {
  read_remote_file(store, name);
  writer_of(store);
  store.fs().unlink(path_of(store, name));
  store.fs().sync_directory(remotes_directory(store));
}

}  // namespace vellum::remote
