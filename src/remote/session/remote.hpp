// remote/session/remote.hpp: a remote's objects, read with all of their checks, and publish().
// docs/remote-format.md describes the objects and the order of writes.
//
// An object that fails its checks is read once more, since it may have been damaged in transit.
//
// Threads: all calls from any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "format/wire/seal.hpp"
#include "format/wire/superblock.hpp"
#include "remote/engine/object_store.hpp"
#include "remote/objects/head.hpp"
#include "remote/objects/hold.hpp"
#include "remote/objects/list_on_base.hpp"
#include "remote/objects/name_table.hpp"
#include "remote/objects/piece.hpp"
#include "remote/objects/piece_list.hpp"
#include "remote/seal/remote_superblock.hpp"
#include "remote/session/local_cache.hpp"

namespace vellum::remote {

struct StoredHead {
  Head head;                         // with all of its versions; number 0: the remote has none
  base::Sha256 hash{};               // of its frame
  std::vector<RemoteVersion> table;  // the versions in its name table
};

// A head in a listing.
struct ListedHead {
  std::uint64_t number = 0, size_bytes = 0;
  bool operator==(const ListedHead&) const = default;
};
// Whether the bytes look like that head, of any store. Their content is not checked: that may need
// a key.
bool may_be_listed_head(const ListedHead& listed, std::span<const std::byte> bytes);

// The superblock of the store whose versions a remote has. Errc::not_found: no remote.
std::vector<std::byte> read_superblock_bytes(ObjectStore& objects);
RemoteSuperblock read_superblock(ObjectStore& objects);

WriteId random_write_id();

struct FetchedPiece {
  std::vector<PieceRecord> records;
  std::vector<std::byte> bytes;  // the records begin at PieceName::index_bytes
};

class Remote {
 public:
  // `cache` may be null; it outlives this object. `name` distinguishes the cached heads of several
  // remotes.
  Remote(ObjectStore& objects, const format::StoreSeal& seal, LocalCache* cache = nullptr,
         const std::string& name = "")
      : objects_(objects), seal_(seal), cache_(cache), cached_head_("head-" + name) {}

  ObjectStore& objects() const noexcept { return objects_; }
  const format::StoreSeal& seal() const noexcept { return seal_; }
  format::FileSeal file_seal() const noexcept { return seal_.of_files(); }

  StoredHead newest_head() const { return newest_head(newest_number()); }
  // The same, with a number from newest_number(); nullopt: no head.
  StoredHead newest_head(std::optional<std::uint64_t> number) const;
  // The same, with the result of newest_copy(): if it is the listed head, the head is not read
  // again.
  StoredHead newest_head(const std::optional<ListedHead>& listed,
                         std::span<const std::byte> copy) const;
  // The newest head in the cache; the remote may have a newer one.
  std::optional<StoredHead> cached_head() const;
  // Whether the remote has this head; its content is not checked. It is the newest if
  // newest_number() agrees, too.
  bool has_head(const HeadId& id) const;
  // Whether a head has this object: by the head's id and its size; the content is not checked.
  bool has_embedded(const EmbeddedObject& object) const;
  // The existing heads among these witnesses, oldest first: `newest`, the one before it, and so on.
  std::vector<std::uint64_t> witnesses(HeadId newest) const;
  // The number of the newest head; nullopt: none.
  std::optional<std::uint64_t> newest_number() const;

  // A table of all versions of `base`, if a new table pays. The caller uploads it under `key`, and
  // then makes it the table of the next head's base by use().
  struct NewTable {
    ObjectName name;
    std::string key;
    std::vector<std::byte> bytes;
    void use(StoredHead& base) const;
  };
  std::optional<NewTable> make_table(const StoredHead& base) const;
  // Uploads the table of a head that this store has read, if the remote has lost it.
  void restore_table(const ObjectName& table) const;
  // Uploads the newest head again if it is damaged: from its copy at the remote, or as this store
  // has last seen it. True: it was. Errc::corrupted: neither is intact.
  bool restore_newest_head() const;
  // Whether the remote has this head, undamaged, with its embedded objects. One request.
  bool has_sound_head(const StoredHead& head) const;

  // Publishes `next`, which has all of its versions, as the successor of `base`; sets its number,
  // `before`, write id, witness and table. `embedded` are lists and pieces that become part of the
  // head's object; their offsets in RemoteVersion::embedded are those in these bytes. Nullopt:
  // another store has published that number, or the remote was emptied or restored meanwhile, which
  // sets `has_lost`; no version has changed. Also replaces the copy of the newest head, with these
  // lists, unless `lists` is null.
  using Lists = std::vector<std::vector<std::byte>>;
  std::optional<StoredHead> publish(const StoredHead& base, Head next,
                                    const Lists* lists = &kNoLists,
                                    std::span<const std::byte> embedded = {},
                                    bool* has_lost = nullptr) const;

  // Deletes a head of this store that does not count. Where the credentials do not permit that, the
  // head stays, and the next one follows it.
  void take_back(std::uint64_t number) const;

  // Lists and pieces that the versions of these heads have in heads are read from there. Heads that
  // this object has read are known.
  void learn_embedded(const Head& head) const;
  // The places where heads have the object, the newest head first.
  std::vector<EmbeddedObject> embedded(const ContentName& name, std::uint64_t size_bytes) const;

  // A list and its base are read concurrently. The last base stays in memory: read the lists of one
  // base consecutively. Errc::not_found, corrupted; each names the object.
  VersionPieces pieces_of(const ListName& name) const;
  PieceList list(const ListName& name) const { return pieces_of(name).list; }
  // A whole list, as the base of others.
  std::shared_ptr<const BaseList> base_list(const ObjectName& name) const;
  // The bytes of a list. Checks their hash only.
  std::vector<std::byte> list_bytes(const ObjectName& name) const;
  std::vector<PieceRecord> piece_index(const PieceName& name) const;
  // The same, without a request; nullopt: not in the cache.
  std::optional<std::vector<PieceRecord>> cached_piece_index(const PieceName& name) const;
  // The whole piece; its records have the sizes that the index states.
  FetchedPiece piece(const PieceName& name) const;
  // A part of the piece; its content is not checked.
  std::vector<std::byte> piece_range(const PieceName& name, ObjectRange range) const;
  // Checks the records for which is_wanted() returns true; it is called once for each, in order.
  // Errc::corrupted names the piece and the place.
  void require_records(const PieceName& name, const FetchedPiece& piece,
                       const std::function<bool(const PieceRecord& record)>& is_wanted) const;

  // Nullopt: no such hold.
  std::optional<Hold> hold(const std::string& key) const;

  // A list and its base, if both are in the cache; otherwise nothing.
  Lists cached_lists(const ListName& name) const;
  // Reads each of these lists once without a request.
  void give_lists(Lists lists) const;
  // Caches a list or a piece index that is being uploaded.
  void keep_in_cache(const std::string& key, std::span<const std::byte> bytes) const {
    if (cache_ != nullptr) cache_->put(key, bytes);
  }

  std::string name_of(const std::string& key) const { return objects_.url() + ": " + key; }

 private:
  static inline const Lists kNoLists;
  friend StoredHead newest_head_of(ObjectStore& objects);
  std::optional<StoredHead> read_head(std::uint64_t number) const;
  StoredHead decoded_head(std::uint64_t number, std::span<const std::byte> bytes) const;
  StoredHead with_table(StoredHead head) const;
  std::optional<HeadId> id_of_head(std::uint64_t number) const;
  bool has_start_of(const EmbeddedObject& object) const;
  struct ObjectPlace;
  std::vector<std::byte> get_part(const ObjectPlace& place, ObjectRange range) const;
  template <typename Read>
  auto read_content(const std::string& key, const ContentName& name, std::uint64_t size_bytes,
                    const Read& read) const -> decltype(read(std::declval<const ObjectPlace&>()));
  VersionPieces whole_list(const ObjectName& name) const;
  std::shared_ptr<const BaseList> last_base(const ObjectName& name) const;
  std::vector<std::byte> get_content(const std::string& key, const ObjectName& name,
                                     std::uint64_t most_bytes) const;
  void put_newest_copy(const NewestCopy& copy) const;
  std::vector<std::byte> given_list(const base::Sha256& hash) const;
  bool is_published(const StoredHead& base, const StoredHead& head, bool& has_lost) const;
  bool keeps_base(const StoredHead& base, std::uint64_t number, bool& has_lost) const;

  ObjectStore& objects_;
  const format::StoreSeal seal_;
  LocalCache* const cache_;
  const std::string cached_head_;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::map<base::Sha256, std::vector<std::byte>> given_lists_;
  mutable std::shared_ptr<const BaseList> last_base_;
  mutable std::string last_head_key_;         // of the head that was read last
  mutable std::vector<std::byte> last_head_;  // its bytes, if it has embedded objects
  // By the start of the hash, and the size.
  mutable std::map<std::pair<std::uint64_t, std::uint64_t>, std::set<EmbeddedObject>> embedded_;
};

// The newest head of a remote, by one listing; nullopt: none.
std::optional<ListedHead> newest_listed_at(ObjectStore& objects);
// The bytes of the copy of the newest head; empty: none, or it cannot be read. It may be old or
// damaged.
std::vector<std::byte> newest_copy(ObjectStore& objects);

// The number of a remote's newest head; nullopt: none.
std::optional<std::uint64_t> newest_number_at(ObjectStore& objects);

// The newest head of a remote of any store. Errc::not_found: no remote; wrong_key: it is encrypted,
// and key_source() has no secret for it.
StoredHead newest_head_of(ObjectStore& objects);

}  // namespace vellum::remote
