// remote/remote.hpp: a remote's objects, read with all of their checks, and the one way to publish.
// docs/remote-format.md has the objects and the order of writes.
//
// An object that fails its checks is read once more, since it may have been damaged on the way.
//
// Threads: all calls from any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/superblock.hpp"
#include "remote/engine/object_store.hpp"
#include "remote/local_cache.hpp"
#include "remote/objects/head.hpp"
#include "remote/objects/piece.hpp"
#include "remote/objects/piece_list.hpp"

namespace vellum::remote {

struct StoredHead {
  Head head;            // number 0: the remote has none
  base::Sha256 hash{};  // of its bytes
};

// The superblock of the store whose versions a remote has. Errc::not_found: there is no remote.
std::vector<std::byte> read_superblock_bytes(ObjectStore& objects);
format::Superblock read_superblock(ObjectStore& objects);

WriteId random_write_id();

struct Piece {
  std::vector<PieceRecord> records;
  std::vector<std::byte> bytes;  // the records begin at contents_bytes of its name
};

class Remote {
 public:
  // `cache` may be null; it outlives this.
  Remote(ObjectStore& objects, const format::Uuid& store_id, LocalCache* cache = nullptr)
      : objects_(objects), store_id_(store_id), cache_(cache) {}

  ObjectStore& objects() const noexcept { return objects_; }
  const format::Uuid& store_id() const noexcept { return store_id_; }

  StoredHead newest_head() const { return newest_head(newest_number(objects_)); }
  // The same, where its number was looked up just now.
  StoredHead newest_head(std::optional<std::uint64_t> number) const;
  // nullopt: the remote has no head.
  static std::optional<std::uint64_t> newest_number(ObjectStore& objects);
  // Publishes `next` behind `base`; sets its number, its `before` and its write id. False: another
  // head is there already, and nothing has changed.
  bool publish(const StoredHead& base, Head next) const;

  // Errc::not_found, corrupted; each names the object.
  VersionPieces pieces_of(const ListName& name) const;
  PieceList list(const ListName& name) const { return pieces_of(name).list; }
  std::vector<PieceRecord> contents(const PieceName& name) const;
  // The same, without a request; nothing where there is no copy in the cache.
  std::optional<std::vector<PieceRecord>> cached_contents(const PieceName& name) const;
  // All of it, the records as long as the contents say.
  Piece piece(const PieceName& name) const;

  // Keeps a list, or the contents of a piece, that was uploaded just now in the cache.
  void remember(const std::string& key, std::span<const std::byte> bytes) const {
    if (cache_ != nullptr) cache_->put(key, bytes);
  }

  std::string name_of(const std::string& key) const { return objects_.url() + ": " + key; }

 private:
  std::optional<StoredHead> read_head(std::uint64_t number) const;
  bool is_published(std::uint64_t number, const base::Sha256& hash) const;

  ObjectStore& objects_;
  const format::Uuid store_id_;
  LocalCache* const cache_;
};

}  // namespace vellum::remote
