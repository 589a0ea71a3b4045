#include "remote/lazy/open_remote.hpp"

#include <cstdlib>
#include <optional>

#include "base/environment.hpp"
#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "base/parse_number.hpp"
#include "remote/engine/remote_timeout.hpp"
#include "remote/lazy/cloned_packs.hpp"
#include "remote/lazy/head_packs.hpp"
#include "remote/lazy/remote_files.hpp"
#include "remote/lazy/shared_opening.hpp"
#include "remote/session/known_remotes.hpp"
#include "remote/session/missing_pieces.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/session/remote_keys.hpp"

namespace vellum::remote {
namespace {

constexpr std::uint64_t kDefaultCacheBytes = 10ULL << 30;

std::optional<std::uint64_t> number_in(const char* variable) {
  const auto text = base::environment(variable);
  if (!text.has_value()) return std::nullopt;
  const auto number = base::parse_number<std::uint64_t>(*text);
  if (!number.has_value()) fail(Errc::invalid_argument, "{}='{}': not a number", variable, *text);
  return number;
}

std::string cache_directory() {
  // Set but empty: no cache.
  if (const char* const own = std::getenv("VELLUM_CACHE_DIR")) return own;
  const auto xdg = base::environment("XDG_CACHE_HOME").value_or("");
  if (xdg.starts_with('/')) return std::string(xdg) + "/vellum";
  const auto home = base::environment("HOME").value_or("");
  return home.starts_with('/') ? std::string(home) + "/.cache/vellum" : "";
}

LazyOptions resolve(const RemoteOptions& options) {
  LazyOptions out;
  out.cache_directory =
      options.cache_directory.has_value() ? *options.cache_directory : cache_directory();
  out.cache_bytes = options.cache_bytes.has_value()
                        ? *options.cache_bytes
                        : number_in("VELLUM_CACHE_BYTES").value_or(kDefaultCacheBytes);
  out.timeout = remote_timeout(options.longest_wait);
  return out;
}

// The store, and the files of its names, which must outlive it.
struct OpenRemote {
  OpenRemote(base::Fs& fs, const std::string& url, const UnlockedRemote& unlocked, const Head& head)
      : names(fs, url, unlocked, head) {}
  RemoteFiles names;
  std::shared_ptr<store::StoreDirectory> core;
};

struct NewestHead {
  Head head;
  Remote::Lists lists;  // some of its versions'
};

// Errc::wrong_key: the store is plain, and key_source() wants another. Who can write the directory
// of an encrypted store can put a plain one there: no secret opens such a lazy clone, and a command
// on a remote opens the remote with the secret before it writes anything.
void require_wanted(const store::StoreDirectory& store, store::PlainStores plain) {
  if (store.is_encrypted() || plain == store::PlainStores::all) return;
  const KeySource source = key_source();
  bool has_remote = source.encrypted_only && source.or_encrypted_remote;
  if (has_remote && plain == store::PlainStores::if_wanted) {
    has_remote = has_missing_pieces(store.fs(), store.path()) &&
                 read_remote_file(store, kDefaultRemoteName).objects_key.has_value();
  } else if (has_remote) {
    has_remote = has_encrypted_remote(store);
  }
  store::require_may_be_plain(store.path(), has_remote);
}

std::shared_ptr<store::StoreDirectory> open_at(base::Fs& fs, const std::string& url,
                                               const UnlockedRemote& unlocked, NewestHead newest,
                                               const LazyOptions& options,
                                               std::shared_ptr<ObjectStore> objects) {
  auto out = std::make_shared<OpenRemote>(fs, url, unlocked, newest.head);
  // Who has opened encrypted objects does not ask whether the store in them is plain.
  const auto plain =
      objects->objects_key() != nullptr ? store::PlainStores::all : store::PlainStores::if_wanted;
  auto packs = std::make_shared<HeadPacks>(fs, std::move(objects), unlocked.seal,
                                           std::move(newest.head), out->names, options);
  packs->give_lists(std::move(newest.lists));
  out->core =
      store::StoreDirectory::open(out->names, url, std::move(packs), unlocked.seal.keys, plain);
  return {out, out->core.get()};
}

}  // namespace

std::shared_ptr<store::StoreDirectory> open_remote(base::Fs& fs, const std::string& given,
                                                   const RemoteOptions& options,
                                                   std::shared_ptr<ObjectStore> objects) {
  const std::string url = base::without_end_slashes(given);
  const LazyOptions resolved = resolve(options);
  if (objects == nullptr) objects = open_object_store(fs, url, resolved.timeout);
  Opening opening =
      read_opening(fs, *objects, resolved.cache_bytes == 0 ? "" : resolved.cache_directory);
  RemoteSuperblock superblock;
  if (decode_remote_superblock(opening.superblock, superblock) != format::SuperblockStatus::ok) {
    superblock = read_superblock(*objects);  // once more: it may have been damaged in transit
  }
  const UnlockedRemote unlocked = unlock_remote(std::move(objects), superblock);
  // Without the key, nothing of it could be read.
  if (superblock.objects_key.has_value()) opening = read_opening(fs, *unlocked.objects, "");
  Head head =
      Remote(*unlocked.objects, unlocked.seal).newest_head(opening.listed, opening.head).head;
  return open_at(fs, url, unlocked, {std::move(head), std::move(opening.lists)}, resolved,
                 unlocked.objects);
}

std::shared_ptr<store::StoreDirectory> open_head(base::Fs& fs, const format::Superblock& superblock,
                                                 std::shared_ptr<const base::StoreKeys> keys,
                                                 Head head, const RemoteOptions& options,
                                                 std::shared_ptr<ObjectStore> objects) {
  const std::string url = objects->url();
  const UnlockedRemote unlocked{
      {superblock, std::nullopt}, {}, {superblock.store_id, std::move(keys)}, objects};
  return open_at(fs, url, unlocked, {std::move(head), {}}, resolve(options), std::move(objects));
}

std::shared_ptr<store::StoreDirectory> open_store(base::Fs& fs, const std::string& given,
                                                  const RemoteOptions& options,
                                                  std::shared_ptr<ObjectStore> objects,
                                                  std::shared_ptr<const base::StoreKeys> keys,
                                                  store::PlainStores plain) {
  const std::string path = base::without_end_slashes(given);
  auto core =
      store::StoreDirectory::open(fs, path, nullptr, std::move(keys), store::PlainStores::all);
  require_wanted(*core, plain);
  if (!has_missing_pieces(core->fs(), path)) return core;
  const LazyOptions resolved = resolve(options);
  if (objects == nullptr || objects->objects_key() == nullptr) {
    const RemoteFile file = read_remote_file(*core, kDefaultRemoteName);
    if (objects == nullptr) objects = open_object_store_later(fs, file.url, resolved.timeout);
    objects = opened_objects(*core, file, std::move(objects), SlotsFrom::store_first);
  }
  const format::StoreSeal seal = core->store_seal();
  auto packs = std::make_shared<ClonedPacks>(fs, path, std::move(objects), seal, resolved);
  return store::StoreDirectory::open(fs, path, std::move(packs), seal.keys,
                                     store::PlainStores::all);
}

std::shared_ptr<store::StoreDirectory> open_store_with_remotes(
    base::Fs& fs, const std::string& path, std::shared_ptr<const base::StoreKeys> keys) {
  return open_store(fs, path, {}, nullptr, std::move(keys),
                    store::PlainStores::with_encrypted_remote);
}

}  // namespace vellum::remote
