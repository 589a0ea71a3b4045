#include "remote/session/remote.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <future>
#include <random>

#include "base/fail.hpp"
#include "base/threads/start_thread.hpp"
#include "base/try_to.hpp"
#include "format/wire/number.hpp"
#include "format/wire/whole_file.hpp"
#include "remote/engine/attempts.hpp"
#include "remote/seal/sealed_object.hpp"
#include "remote/session/remote_keys.hpp"

namespace vellum::remote {
namespace {

constexpr std::uint64_t kMaxSuperblockObjectBytes = 64u << 10;
constexpr std::uint64_t kMaxCopiedHeadBytes = 64u << 10;  // a larger head has no copy
constexpr std::uint64_t kMaxKeptHeadBytes = 512u << 10;   // in memory, with embedded objects
constexpr std::size_t kHeadsListed = 8;                   // foreign keys among them are skipped

// Runs `read` again after damage, which may have occurred in transit.
template <typename Read>
auto read_twice(const Read& read) {
  try {
    return read();
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
  }
  return read();
}

void require_content(const std::string& name, std::span<const std::byte> bytes,
                     const base::Sha256& hash) {
  if (base::sha256(bytes) == hash) return;
  fail(Errc::corrupted, "{}: the content does not have the SHA-256 of its name", name);
}

// `problem` is the decoder's; null: the object is sound. `bytes` are those that it has decoded.
void require_sound(const std::string& name, const char* problem, std::span<const std::byte> bytes,
                   const format::Uuid& store_id) {
  if (problem == nullptr) return;
  if (is_sealed_object(bytes)) {
    fail(Errc::wrong_key, "{}: the remote is encrypted, and was a plain one (exchanged?)", name);
  }
  const auto code_of = [](format::FrameProblem frame) {
    switch (frame) {
      case format::FrameProblem::newer_format:
        return Errc::newer_format;
      case format::FrameProblem::other_store:
        return Errc::invalid_argument;
      default:
        return Errc::corrupted;
    }
  };
  const Errc code = code_of(format::check_frame(bytes, store_id));
  fail(code, "{}: {}{}", name, problem,
       code == Errc::invalid_argument
           ? ": this is not a remote of the store (`vellum remote set-url` changes its URL, and "
             "`vellum clone` makes a store of this one)"
           : "");
}

std::optional<std::vector<std::byte>> get_if_present(ObjectStore& objects, const std::string& key,
                                                     std::uint64_t limit_bytes) {
  try {
    return objects.get(key, limit_bytes);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    return std::nullopt;
  }
}

}  // namespace

std::optional<ListedHead> newest_listed_at(ObjectStore& objects) {
  for (const ObjectInfo& object : objects.list(kHeadPrefix, kHeadsListed)) {
    if (const auto number = parse_head_key(object.key)) return {{*number, object.size_bytes}};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> newest_number_at(ObjectStore& objects) {
  const auto listed = newest_listed_at(objects);
  return listed.has_value() ? std::optional(listed->number) : std::nullopt;
}

bool may_be_listed_head(const ListedHead& listed, std::span<const std::byte> bytes) {
  return bytes.size() == listed.size_bytes && bytes.size() >= kHeadStartBytes &&
         format::check_frame(frame_of_head(bytes), format::id_of_whole_file(bytes)) ==
             format::FrameProblem::none &&
         head_id_at_start(bytes.first(kHeadStartBytes)).number == listed.number;
}

std::vector<std::byte> newest_copy(ObjectStore& objects) {
  std::vector<std::byte> out;
  base::try_to([&] { out = objects.get(kNewestKey, kMaxNewestCopyBytes); });
  return out;
}

std::vector<std::byte> read_superblock_bytes(ObjectStore& objects) {
  try {
    return objects.get(kSuperblockKey, kMaxSuperblockObjectBytes);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    fail(Errc::not_found, "{}: there is no remote ({})", objects.url(), e.what());
  }
}

RemoteSuperblock read_superblock(ObjectStore& objects) {
  return read_twice([&] {
    RemoteSuperblock out;
    const std::string name = objects.url() + ": " + kSuperblockKey;
    const auto bytes = read_superblock_bytes(objects);
    switch (decode_remote_superblock(bytes, out)) {
      case format::SuperblockStatus::ok:
        return out;
      case format::SuperblockStatus::newer_format:
        if (has_damaged_number(bytes)) break;
        fail(Errc::newer_format, "{}: written by a newer Vellum", name);
      case format::SuperblockStatus::not_a_store:
        if (newest_number_at(objects).has_value()) break;
        fail(Errc::not_a_store, "{}: not the superblock of a Vellum store", name);
      case format::SuperblockStatus::corrupted:
        break;
    }
    fail(Errc::corrupted,
         "{}: the superblock is corrupted: a push from the store whose remote it is puts it again, "
         "and `vellum repair {} --from STORE` does",
         name, objects.url());
  });
}

WriteId random_write_id() {
  std::random_device device;
  WriteId id;
  for (auto& b : id) b = static_cast<std::byte>(device());
  return id;
}

// Without the name table. nullopt: no head of this number.
std::optional<StoredHead> Remote::read_head(std::uint64_t number) const {
  const std::string key = head_key(number);
  return read_twice([&]() -> std::optional<StoredHead> {
    const auto bytes = get_if_present(objects_, key, kMaxHeadBytes);
    if (!bytes.has_value()) return std::nullopt;
    return decoded_head(number, *bytes);
  });
}

StoredHead Remote::decoded_head(std::uint64_t number, std::span<const std::byte> bytes) const {
  StoredHead out;
  const std::string name = name_of(head_key(number));
  require_sound(name, decode_head(bytes, file_seal(), out.head), frame_of_head(bytes),
                seal_.store_id);
  if (out.head.number != number)
    fail(Errc::corrupted, "{}: this is head {}", name, out.head.number);
  const auto frame = frame_of_head(bytes);
  out.hash = base::sha256(frame);
  // Damage of an embedded object makes only those versions unreadable that need it.
  const bool is_sound = has_sound_objects(out.head, bytes);
  keep_in_cache(cached_head_, is_sound ? bytes : frame);
  if (is_sound && frame.size() < bytes.size() && bytes.size() <= kMaxKeptHeadBytes) {
    const std::lock_guard lock(mutex_);
    last_head_key_ = head_key(number);
    last_head_.assign(bytes.begin(), bytes.end());
  }
  return out;
}

// Adds the versions of the head's name table.
StoredHead Remote::with_table(StoredHead head) const {
  const ObjectName& name = head.head.table;
  if (name.size_bytes == 0) {
    learn_embedded(head.head);
    return head;
  }
  const std::string key = names_key(name.content);
  read_twice([&] {
    const auto bytes = get_content(key, name, kMaxNameTableBytes);
    require_sound(name_of(key), decode_name_table(bytes, file_seal(), head.table), bytes,
                  seal_.store_id);
    return 0;
  });
  head.head.versions = all_names(head.head, head.table);
  head.head.gone.clear();
  for (const RemoteVersion& version : head.head.versions) {
    if (!version.embedded.empty() && version.embedded.back().head > head.head.number) {
      fail(Errc::corrupted, "{}: it names a later head", name_of(key));
    }
  }
  learn_embedded(head.head);
  return head;
}

void Remote::learn_embedded(const Head& head) const {
  const std::lock_guard lock(mutex_);
  for (const RemoteVersion& version : head.versions) {
    for (const EmbeddedObject& object : version.embedded) {
      embedded_[{object.hash_start, object.size_bytes}].insert(object);
    }
  }
}

std::vector<EmbeddedObject> Remote::embedded(const ContentName& name,
                                             std::uint64_t size_bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = embedded_.find({hash_start(name.hash), size_bytes});
  if (at == embedded_.end()) return {};
  return {at->second.rbegin(), at->second.rend()};
}

// A list or a piece at the remote: an object, or a part of a head's.
struct Remote::ObjectPlace {
  std::string key;
  std::uint64_t offset_bytes = 0;
  std::string name;  // for messages
};

// The newest head that was read may have the part: a pull then needs no other request.
std::vector<std::byte> Remote::get_part(const ObjectPlace& place, ObjectRange range) const {
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t from = place.offset_bytes + range.offset_bytes;
    if (place.key == last_head_key_ && from + range.length_bytes <= last_head_.size()) {
      const auto at = last_head_.begin() + static_cast<std::ptrdiff_t>(from);
      return {at, at + static_cast<std::ptrdiff_t>(range.length_bytes)};
    }
  }
  return objects_.get_range(place.key,
                            {place.offset_bytes + range.offset_bytes, range.length_bytes});
}

// Reads from a head first, if one has it. gc deletes a head after it has put what versions need of
// it as objects: then, and if the head is damaged, the object is read. If that is missing, too, and
// another head has got the number, it is not damaged but gone.
template <typename Read>
auto Remote::read_content(const std::string& key, const ContentName& name, std::uint64_t size_bytes,
                          const Read& read) const
    -> decltype(read(std::declval<const ObjectPlace&>())) {
  std::exception_ptr damage;
  std::optional<EmbeddedObject> damaged;
  for (const EmbeddedObject& in_head : embedded(name, size_bytes)) {
    const std::string head = head_key(in_head.head);
    try {
      return read(ObjectPlace{head, in_head.offset_bytes, name_of(head) + ", in it " + key});
    } catch (const Error& e) {
      if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
      if (e.code() == Errc::corrupted) {
        damage = std::current_exception();
        damaged = in_head;
      }
      const std::lock_guard lock(mutex_);
      last_head_key_.clear();  // it may have been damaged in transit
    }
  }
  try {
    return read(ObjectPlace{key, 0, name_of(key)});
  } catch (const Error& e) {
    if (e.code() != Errc::not_found || damage == nullptr || !has_start_of(*damaged)) throw;
  }
  std::rethrow_exception(damage);
}

std::optional<std::uint64_t> Remote::newest_number() const { return newest_number_at(objects_); }

// The newest head is never deleted. If `number` does not exist any more, there is a newer head.
StoredHead Remote::newest_head(std::optional<std::uint64_t> number) const {
  for (Attempts attempts(objects_); number.has_value(); number = newest_number()) {
    attempts.begin();
    auto head = read_head(*number);
    if (!head.has_value()) continue;
    try {
      return with_table(std::move(*head));
    } catch (const Error& e) {  // a gc deletes its table, too
      if (e.code() != Errc::not_found || newest_number() == number) throw;
    }
  }
  return {};
}

// The copy is only a hint: the number and the size of the newest head are those of the listing.
StoredHead Remote::newest_head(const std::optional<ListedHead>& listed,
                               std::span<const std::byte> copy) const {
  if (!listed.has_value()) return {};
  Head head;
  if (!may_be_listed_head(*listed, copy) || decode_head(copy, file_seal(), head) != nullptr) {
    return newest_head(listed->number);
  }
  try {
    return with_table(decoded_head(listed->number, copy));
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    return newest_head(listed->number);
  }
}

// Best effort: readers work without the copy.
void Remote::put_newest_copy(const NewestCopy& copy) const {
  if (copy.head.size() > kMaxCopiedHeadBytes) return;
  const auto bytes = encode_newest_copy(copy);
  base::try_to(
      [&] { objects_.put(kNewestKey, bytes.size() <= kMaxNewestCopyBytes ? bytes : copy.head); });
}

StoredHead newest_head_of(ObjectStore& objects) {
  for (Attempts attempts(objects);;) {
    attempts.begin();
    const auto number = newest_number_at(objects);
    if (!number.has_value()) {
      read_superblock(objects);
      return {};
    }
    const auto bytes = get_if_present(objects, head_key(*number), kMaxHeadBytes);
    if (!bytes.has_value()) continue;
    if (format::is_sealed_file(*bytes) || is_sealed_object(*bytes)) break;
    store::require_may_be_plain(objects.url());
    const Remote remote(objects, format::id_of_whole_file(*bytes));
    try {
      return remote.with_table(remote.decoded_head(*number, *bytes));
    } catch (const Error& e) {
      if (e.code() == Errc::not_found && newest_number_at(objects) != number) continue;
      if (e.code() != Errc::corrupted) throw;
    }
    break;  // damage in transit may have changed the id, too
  }
  const UnlockedRemote unlocked = unlock_remote(objects);
  return Remote(*unlocked.objects, unlocked.seal).newest_head();
}

std::optional<StoredHead> Remote::cached_head() const {
  std::vector<std::byte> bytes;
  StoredHead out;
  if (cache_ == nullptr || !cache_->get(cached_head_, bytes) ||
      decode_head(bytes, file_seal(), out.head) != nullptr) {
    return std::nullopt;
  }
  out.hash = base::sha256(frame_of_head(bytes));
  std::vector<std::byte> table;
  const ObjectName& name = out.head.table;
  if (name.size_bytes != 0 && !cache_->get(names_key(name.content), name.content.hash, table)) {
    return std::nullopt;
  }
  return with_table(std::move(out));
}

// Nullopt: no head of this number, or too short.
std::optional<HeadId> Remote::id_of_head(std::uint64_t number) const {
  assert(number != 0);
  try {
    return head_id_at_start(objects_.get_range(head_key(number), {0, kHeadStartBytes}));
  } catch (const Error& e) {
    if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
    return std::nullopt;
  }
}

bool Remote::has_head(const HeadId& id) const { return id_of_head(id.number) == id; }

bool Remote::has_sound_head(const StoredHead& head) const {
  assert(head.head.number != 0);
  const std::string key = head_key(head.head.number);
  const auto is_sound = [&] {
    try {
      const auto bytes = get_if_present(objects_, key, kMaxHeadBytes);
      Head there;
      return bytes.has_value() && decode_head(*bytes, file_seal(), there) == nullptr &&
             base::sha256(frame_of_head(*bytes)) == head.hash && has_sound_objects(there, *bytes);
    } catch (const Error& e) {
      if (e.code() != Errc::corrupted && e.code() != Errc::wrong_key) throw;
      return false;
    }
  };
  return is_sound() || is_sound();  // the reply may have been damaged in transit
}

// Whether the head that has the object exists.
bool Remote::has_start_of(const EmbeddedObject& object) const {
  const auto id = id_of_head(object.head);
  return id.has_value() && id_start(id->write_id) == object.head_id;
}

bool Remote::has_embedded(const EmbeddedObject& object) const {
  if (!has_start_of(object)) return false;
  try {
    objects_.get_range(head_key(object.head), {end_of(object) - 1, 1});
    return true;
  } catch (const Error& e) {
    if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
    return false;
  }
}

std::vector<std::uint64_t> Remote::witnesses(HeadId newest) const {
  std::vector<std::uint64_t> out;
  for (HeadId id = newest; id.number != 0;) {
    const auto bytes = get_if_present(objects_, head_key(id.number), kMaxHeadBytes);
    if (!bytes.has_value()) break;
    out.push_back(id.number);
    Head head;
    if (decode_head(*bytes, file_seal(), head) != nullptr || head.id() != id) break;
    id = head.earlier_witness;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

// Whether the remote has the base of a head that was put, and no gc has deleted that head before. If
// gc deletes the base first, the base shows both. Otherwise its witness shows the latter, and a remote
// that was restored from an older copy has lost the base, perhaps not the witness: two small requests
// at once.
bool Remote::keeps_base(const StoredHead& base, std::uint64_t number, bool& has_lost) const {
  const HeadId witness = base.head.witness();
  if (witness.number == 0) return false;
  const bool is_deleted_first = deletion_round(base.head.number) < deletion_round(number);
  if (is_deleted_first && has_head(base.head.id())) return true;
  bool has_base = true;
  std::future<void> asked;
  if (witness != base.head.id()) {
    asked = base::beside([&] { has_base = has_head(base.head.id()); });
  }
  const bool has_witness = has_head(witness);
  if (asked.valid()) asked.get();
  if (!has_witness || has_base) return has_witness;
  if (has_head(base.head.id())) return true;  // the reply was damaged in transit
  has_lost = has_head(witness);               // gc deletes the witness first
  return false;
}

// A slow push may recreate the number of a head that gc has deleted. As long as the witness exists,
// gc has deleted no later head. Without a witness, a head counts if it is the newest, or if the next
// one was based on it.
bool Remote::is_published(const StoredHead& base, const StoredHead& head, bool& has_lost) const {
  if (keeps_base(base, head.head.number, has_lost)) return true;
  const auto newest = newest_number();
  if (newest == head.head.number) {
    const bool has_witness = base.head.witness().number != 0;
    if (!has_lost && (!has_witness || has_head(base.head.id()))) return true;
    // The remote was emptied, or restored from an older copy, since the base was seen. This head
    // would be the only one left, or hide those that another store has published since.
    has_lost = true;
    take_back(head.head.number);
    return false;
  }
  if (has_lost) return false;
  const auto next = newest.has_value() ? read_head(head.head.next_number()) : std::nullopt;
  return next.has_value() && next->head.before == head.hash;
}

void Remote::take_back(std::uint64_t number) const {
  try {
    objects_.remove(head_key(number));
  } catch (const RefusedRequest&) {  // of credentials that may only put
  }
}

void Remote::NewTable::use(StoredHead& base) const {
  assert(name.size_bytes != 0);
  base.head.table = name;
  base.table = base.head.versions;
}

std::optional<Remote::NewTable> Remote::make_table(const StoredHead& base) const {
  Head own = base.head;
  set_names(own, base.head.versions, base.table);
  if (!wants_new_table(own, base.table)) return std::nullopt;
  NewTable out;
  out.bytes = encode_name_table(base.head.versions, base.head.generation, file_seal());
  out.name = {{base.head.generation, base::sha256(out.bytes)}, out.bytes.size()};
  out.key = names_key(out.name.content);
  keep_in_cache(out.key, out.bytes);
  return out;
}

// Heads that follow would refer to it, and only this store's cache may have it.
void Remote::restore_table(const ObjectName& table) const {
  const std::string key = names_key(table.content);
  try {
    objects_.get_range(key, {0, 1});
    return;
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
  objects_.put_if_absent(key, get_content(key, table, kMaxNameTableBytes));
}

// After a bucket was restored from an older copy, this store may have seen another head of that
// number. The head before it tells them apart, as far as gc has left it.
bool Remote::restore_newest_head() const {
  const auto listed = newest_listed_at(objects_);
  if (!listed.has_value()) return false;
  const std::string key = head_key(listed->number);
  std::vector<std::byte> seen;  // before another reading of it
  if (cache_ != nullptr) cache_->get(cached_head_, seen);
  base::Sha256 there{};  // of a head that is only damaged in embedded objects
  try {
    const auto head = read_head(listed->number);
    if (!head.has_value() || has_sound_head(*head)) return false;
    there = head->hash;
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
  }
  const bool is_readable = there != base::Sha256{};
  std::optional<StoredHead> before;
  if (listed->number > 1) base::try_to([&] { before = read_head(listed->number - 1); });
  std::optional<std::vector<std::byte>> found;
  bool is_whole = false;
  for (const auto& bytes :
       {decode_newest_copy(newest_copy(objects_), listed->size_bytes).head, seen}) {
    Head head;
    if (decode_head(bytes, file_seal(), head) != nullptr || head.number != listed->number) continue;
    if (before.has_value() && before->hash != head.before) continue;
    if (is_readable && base::sha256(frame_of_head(bytes)) != there) continue;
    is_whole = has_sound_objects(head, bytes);
    if (is_whole || !found.has_value()) found = bytes;  // its objects are pushed again
    if (is_whole) break;
  }
  if (is_readable && !is_whole) return false;  // the versions that need them are sent again
  if (found.has_value()) {
    objects_.put(key, *found);
    return true;
  }
  fail(Errc::corrupted,
       "{}: it is damaged, and no copy of it is left. Remove this object: then the head before it "
       "counts, and a push or "
       "a repair adds the versions of this store again",
       name_of(key));
}

std::optional<StoredHead> Remote::publish(const StoredHead& base, Head next, const Lists* lists,
                                          std::span<const std::byte> embedded,
                                          bool* has_lost) const {
  assert(std::ranges::is_sorted(next.versions, {}, [](const auto& v) { return v.ref.name; }));
  next.number = base.head.next_number();
  if (next.continues_at <= next.number) next.continues_at = 0;  // that of the base
  next.before = base.hash;
  next.write_id = random_write_id();
  next.table = base.head.table;
  next.earlier_witness = base.head.witness();
  next.is_witness = next.earlier_witness.number == 0 || next.generation != base.head.generation;
  for (RemoteVersion& version : next.versions) {
    for (EmbeddedObject& object : version.embedded) {
      if (object.head == next.number) object.head_id = id_start(next.write_id);
    }
  }
  Head short_head = next;
  set_names(short_head, next.versions, base.table);
  const auto bytes = encode_head_with(short_head, embedded, file_seal());
  if (bytes.size() > kMaxHeadBytes) {
    fail(Errc::invalid_argument, "{}: too many versions: their names take {} bytes", objects_.url(),
         bytes.size());
  }
  Head again;
  require_sound("a new head of " + objects_.url(), decode_head(bytes, file_seal(), again),
                frame_of_head(bytes), seal_.store_id);
  for (RemoteVersion& version : next.versions) {
    if (const RemoteVersion* own = short_head.find(version.ref.name)) {
      version.embedded = own->embedded;
    }
  }
  if (!objects_.put_if_absent(head_key(next.number), bytes)) return std::nullopt;
  StoredHead out{std::move(next), base::sha256(frame_of_head(bytes)), base.table};
  std::future<void> copied;
  if (lists != nullptr) copied = base::beside([&] { put_newest_copy({bytes, *lists}); });
  bool lost = false;
  const bool counts = is_published(base, out, lost);
  if (has_lost != nullptr) *has_lost = lost;
  if (lists != nullptr) copied.wait();
  if (!counts) return std::nullopt;
  keep_in_cache(cached_head_, bytes);
  learn_embedded(out.head);
  return out;
}

Remote::Lists Remote::cached_lists(const ListName& name) const {
  Lists out;
  for (const ObjectName& object : {name.own, name.base}) {
    if (object.size_bytes == 0) continue;
    std::vector<std::byte> bytes;
    if (cache_ == nullptr || !cache_->get(list_key(object.content), object.content.hash, bytes)) {
      return {};
    }
    out.push_back(std::move(bytes));
  }
  return out;
}

// The list with this hash; empty: it was not given. It is used once, and then in the cache.
std::vector<std::byte> Remote::given_list(const base::Sha256& hash) const {
  const std::lock_guard lock(mutex_);
  const auto given = given_lists_.extract(hash);
  return given.empty() ? std::vector<std::byte>() : std::move(given.mapped());
}

void Remote::give_lists(Lists lists) const {
  const std::lock_guard lock(mutex_);
  for (auto& list : lists) {
    const base::Sha256 hash = base::sha256(list);
    given_lists_.emplace(hash, std::move(list));
  }
}

// Given, from the cache or from the remote; the hash is checked.
std::vector<std::byte> Remote::get_content(const std::string& key, const ObjectName& name,
                                           std::uint64_t most_bytes) const {
  std::vector<std::byte> bytes;
  if (cache_ != nullptr && cache_->get(key, name.content.hash, bytes)) return bytes;
  bytes = given_list(name.content.hash);
  if (bytes.empty()) {
    const std::uint64_t size_bytes = std::min(name.size_bytes, most_bytes);
    bytes = read_content(key, name.content, name.size_bytes, [&](const ObjectPlace& place) {
      auto got = place.offset_bytes == 0 ? objects_.get(place.key, size_bytes)
                                         : get_part(place, {0, size_bytes});
      require_content(place.name, got, name.content.hash);
      return got;
    });
  }
  keep_in_cache(key, bytes);
  return bytes;
}

VersionPieces Remote::pieces_of(const ListName& name) const {
  if (name.own.size_bytes == 0) return {};
  if (name.base.size_bytes == 0) return whole_list(name.own);
  std::future<std::shared_ptr<const BaseList>> coming;
  auto base = last_base(name.base);
  if (base == nullptr) {
    coming = base::beside([&] { return base_list(name.base); });
  }
  const auto bytes = list_bytes(name.own);
  if (base == nullptr) base = coming.get();
  VersionPieces out;
  require_sound(name_of(list_key(name.own.content)),
                decode_list_on_base(bytes, file_seal(), *base, out), bytes, seal_.store_id);
  return out;
}

std::shared_ptr<const BaseList> Remote::base_list(const ObjectName& name) const {
  assert(name.size_bytes != 0);
  if (auto last = last_base(name)) return last;
  auto out = std::make_shared<const BaseList>(name.content.hash, whole_list(name));
  const std::lock_guard lock(mutex_);
  last_base_ = out;
  return out;
}

std::shared_ptr<const BaseList> Remote::last_base(const ObjectName& name) const {
  const std::lock_guard lock(mutex_);
  const bool is_last = last_base_ != nullptr && last_base_->hash() == name.content.hash;
  return is_last ? last_base_ : nullptr;
}

VersionPieces Remote::whole_list(const ObjectName& name) const {
  VersionPieces out;
  const auto bytes = list_bytes(name);
  require_sound(name_of(list_key(name.content)), decode_piece_list(bytes, file_seal(), out), bytes,
                seal_.store_id);
  return out;
}

std::vector<std::byte> Remote::list_bytes(const ObjectName& name) const {
  assert(name.size_bytes != 0);
  return read_twice([&] { return get_content(list_key(name.content), name, kMaxListBytes); });
}

// The hash in the name is that of the whole piece. The index has its own checksum, and each record
// is compared with it before use.
std::vector<PieceRecord> Remote::piece_index(const PieceName& name) const {
  if (auto cached = cached_piece_index(name)) return std::move(*cached);
  const std::string key = piece_key(name.content);
  const auto read = [&](const ObjectPlace& place) {
    std::vector<PieceRecord> out;
    const auto bytes = get_part(place, {0, name.index_bytes});
    require_sound(place.name, decode_piece_index(bytes, file_seal(), out), bytes, seal_.store_id);
    if (cache_ != nullptr) cache_->put(key, bytes);
    return out;
  };
  return read_twice([&] { return read_content(key, name.content, name.size_bytes, read); });
}

std::vector<std::byte> Remote::piece_range(const PieceName& name, ObjectRange range) const {
  return read_content(piece_key(name.content), name.content, name.size_bytes,
                      [&](const ObjectPlace& place) { return get_part(place, range); });
}

void Remote::require_records(
    const PieceName& name, const FetchedPiece& piece,
    const std::function<bool(const PieceRecord& record)>& is_wanted) const {
  const format::RecordSeal seal = seal_.of_records();
  for_records(piece.records, piece.bytes, static_cast<std::size_t>(name.index_bytes),
              [&](const PieceRecord& record, std::span<const std::byte> bytes, std::size_t at) {
                if (!is_wanted(record)) return;
                const char* const problem = check_record(record, bytes, seal);
                if (problem == nullptr) return;
                fail(Errc::corrupted, "{} at byte {}: {}", name_of(piece_key(name.content)), at,
                     problem);
              });
}

std::optional<std::vector<PieceRecord>> Remote::cached_piece_index(const PieceName& name) const {
  std::vector<std::byte> bytes;
  std::vector<PieceRecord> out;
  if (cache_ == nullptr || !cache_->get(piece_key(name.content), name.index_bytes, bytes) ||
      decode_piece_index(bytes, file_seal(), out) != nullptr) {
    return std::nullopt;
  }
  return out;
}

FetchedPiece Remote::piece(const PieceName& name) const {
  const std::string key = piece_key(name.content);
  const auto read = [&](const ObjectPlace& place) {
    FetchedPiece out;
    out.bytes = place.offset_bytes == 0 ? objects_.get(key, name.size_bytes)
                                        : get_part(place, {0, name.size_bytes});
    if (out.bytes.size() != name.size_bytes) {
      fail(Errc::corrupted, "{}: {} bytes, and not the {} that are expected", place.name,
           out.bytes.size(), name.size_bytes);
    }
    require_content(place.name, out.bytes, name.content.hash);
    const auto start = std::span(out.bytes).first(static_cast<std::size_t>(name.index_bytes));
    require_sound(place.name, decode_piece_index(start, file_seal(), out.records), start,
                  seal_.store_id);
    if (name.index_bytes + records_bytes(out.records) != out.bytes.size()) {
      fail(Errc::corrupted, "{}: the records are not as long as the index says", place.name);
    }
    if (cache_ != nullptr) cache_->put(key, start);
    return out;
  };
  return read_twice([&] { return read_content(key, name.content, name.size_bytes, read); });
}

std::optional<Hold> Remote::hold(const std::string& key) const {
  return read_twice([&]() -> std::optional<Hold> {
    const auto bytes = get_if_present(objects_, key, kMaxHoldBytes);
    if (!bytes.has_value()) return std::nullopt;
    Hold out;
    require_sound(name_of(key), decode_hold(*bytes, file_seal(), out), *bytes, seal_.store_id);
    if (hold_key(out.id) != key) {
      fail(Errc::corrupted, "{}: this is the hold {}", name_of(key), hold_name(out.id));
    }
    return out;
  });
}

}  // namespace vellum::remote
