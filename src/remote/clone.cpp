#include <set>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/files/new_file.hpp"
#include "remote/engine/url.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/pull.hpp"
#include "remote/session/missing_pieces.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/session/remote_keys.hpp"
#include "remote/session/remote_lock.hpp"

namespace vellum::remote {
namespace {

// The files of a killed clone may not be durable.
void sync_remains(base::Fs& fs, const std::string& path) {
  for (const auto& entry : fs.list(path)) {
    const std::string inner = path + "/" + entry.name;
    if (entry.is_directory) sync_remains(fs, inner);
    if (entry.is_regular_file) fs.open(inner, base::OpenMode::read_only)->sync_data();
  }
  fs.sync_directory(path);
}

// A remote that is encrypted by objects has plain clones: the secret is that of the remote.
store::PlainStores plain_stores_of(const UnlockedRemote& remote) {
  return remote.superblock.objects_key.has_value() ? store::PlainStores::all
                                                   : store::PlainStores::if_wanted;
}

void require_plain_clone(const UnlockedRemote& remote) {
  const KeySource source = key_source();
  if (!remote.superblock.objects_key.has_value()) return;
  if (!source.encrypted_only || source.or_encrypted_remote) return;
  fail(Errc::wrong_key, "{}: its clones are plain stores, and encrypted ones are wanted",
       remote.objects->url());
}

// The store of an interrupted clone, or a new one.
std::shared_ptr<store::StoreDirectory> open_unfinished(base::Fs& fs, const std::string& path,
                                                       const UnlockedRemote& from,
                                                       std::shared_ptr<ObjectStore> objects) {
  const format::Superblock& superblock = from.superblock;
  if (!fs.exists(path + "/" + store::kSuperblockName)) {
    if (!superblock.encrypted) {
      return store::StoreDirectory::create_copy(fs, path, superblock, plain_stores_of(from));
    }
    return store::StoreDirectory::create_encrypted_copy(fs, path, superblock, from.key_slots,
                                                        from.seal.keys);
  }
  sync_remains(*base::beneath(fs, path), path);
  auto store = open_store(fs, path, {}, std::move(objects), from.seal.keys, plain_stores_of(from));
  if (store->superblock().store_id != superblock.store_id) {
    fail(Errc::already_exists, "{}: an unfinished clone of another remote: remove it first", path);
  }
  return store;
}

// An interrupted lazy clone refers to the pieces that it has found. After a loss and a refill of
// the remote, its versions are in other pieces there.
void require_pieces_at(ObjectStore& objects, const PieceList& pieces, const std::string& path) {
  if (pieces.empty()) return;
  std::set<std::string> there;
  for (ObjectInfo& object : objects.list(kPiecePrefix, SIZE_MAX))
    there.insert(std::move(object.key));
  for (const PieceName& piece : pieces) {
    if (there.contains(piece_key(piece.content))) continue;
    fail(Errc::already_exists,
         "{}: an unfinished clone, and {} has lost {} since: remove the clone first", path,
         objects.url(), piece_key(piece.content));
  }
}

// The slots of the clone came from the remote: only changes of them are pushed.
void note_key_slots(store::StoreDirectory& store) {
  if (!store.is_encrypted()) return;
  RemoteFile file = read_remote_file(store, kDefaultRemoteName);
  file.key_slots_hash = base::sha256(key_slots_here(store));
  write_remote_file(store, kDefaultRemoteName, file, true);
}

}  // namespace

namespace {

// The clone of a remote at an earlier time has today's as its origin.
void add_origin(store::StoreDirectory& store, const CloneSource& source,
                std::vector<std::string>& warnings) {
  std::optional<RemoteLock> lock;
  if (parse_remote_url(source.url).kind == RemoteUrl::EngineKind::s3) {
    try {
      const auto duration =
          credible_lock_note(Remote(*source.objects, source.remote.seal), &warnings);
      if (duration.has_value()) lock = {*duration, 0};
    } catch (const Error& e) {
      // Who may only read the newest objects clones, too.
      const bool is_refused = dynamic_cast<const RefusedRequest*>(&e) != nullptr;
      if (e.code() != Errc::corrupted && e.code() != Errc::wrong_key && !is_refused) throw;
      warnings.push_back(fmt::format("{} (the clone's pushes lock nothing)", e.what()));
    }
  }
  add_remote_file(store, kDefaultRemoteName, url_at(source.url, ""), false,
                  key_entry_of(*source.objects), lock);
}

}  // namespace

CloneSource open_clone_source(base::Fs& fs, const std::string& url,
                              std::shared_ptr<ObjectStore> objects) {
  if (objects == nullptr) objects = open_object_store(fs, url);
  UnlockedRemote remote = unlock_remote(std::move(objects));
  require_plain_clone(remote);
  return {url, remote.objects, remote};
}

PullReport clone(base::Fs& fs, const CloneSource& source, const std::string& given,
                 const CloneOptions& options, const ProgressFn& progress) {
  const std::string directory = base::without_end_slashes(given);
  base::require_free(fs, directory);
  if (options.lazy && !parse_remote_url(source.url).at.empty()) {
    fail(Errc::invalid_argument,
         "{}: a lazy clone needs the objects of the remote as it is, and not those of an earlier "
         "time",
         source.url);
  }
  if (options.lazy && !options.expect_root.empty()) {
    fail(Errc::invalid_argument,
         "{}: a lazy clone does not fetch the content with which an expected root is compared",
         directory);
  }
  const std::string unfinished = directory + kUnfinishedCloneSuffix;
  PullReport report;
  std::vector<std::string> warnings;
  {
    auto store = open_unfinished(fs, unfinished, source.remote, source.objects);
    if (remote_names(*store).empty()) add_origin(*store, source, warnings);
    note_key_slots(*store);
    if (options.lazy && has_missing_pieces(fs, unfinished)) {
      require_pieces_at(*source.objects,
                        read_missing_pieces(fs, unfinished, store->file_seal()).list, unfinished);
    } else if (options.lazy) {
      write_missing_pieces(*store, {});
      store = open_store(fs, unfinished, {}, source.objects, source.remote.seal.keys,
                         plain_stores_of(source.remote));
    }
    Session session(*store, kDefaultRemoteName, source.objects);
    const bool brings_packs = !options.lazy && has_missing_pieces(fs, unfinished);
    report = pull(
        session,
        {.versions = options.versions, .packs = brings_packs, .expect_root = options.expect_root},
        progress);
  }
  report.warnings = std::move(warnings);
  fs.rename_new(unfinished, directory);
  fs.sync_directory(base::parent_of(directory));
  return report;
}

PullReport clone(base::Fs& fs, const std::string& url, const std::string& directory,
                 const CloneOptions& options, const ProgressFn& progress,
                 std::shared_ptr<ObjectStore> objects) {
  base::require_free(fs, base::without_end_slashes(directory));
  return clone(fs, open_clone_source(fs, url, std::move(objects)), directory, options, progress);
}

}  // namespace vellum::remote
