#include "remote/holds.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/bytes/sha256.hpp"
#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/files/real_path.hpp"
#include "format/wire/wire.hpp"
#include "remote/engine/attempts.hpp"
#include "store/catalog/lock/version_pin.hpp"

namespace vellum::remote {
namespace {

// The path that the store has, or will have once its clone is complete.
std::string final_path(std::string path) {
  constexpr std::string_view kSuffix = kUnfinishedCloneSuffix;
  if (path.ends_with(kSuffix)) path.resize(path.size() - kSuffix.size());
  return path;
}

std::string place_of_store(const store::StoreDirectory& store) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::string out = std::string(host.data()) + ":" + final_path(base::real_path(store.path()));
  if (out.size() > kMaxHoldPlaceBytes) out.resize(kMaxHoldPlaceBytes);
  return out;
}

// A copy of the store (`cp -r`) has the same writer, but another path, inode or time of birth. One
// of a whole disk has another host.
WriteId id_of_hold(const Session& session) {
  const format::TierOwner place = session.store().packs().places().owner();
  std::vector<std::byte> text;
  format::ByteWriter w(text);
  w.bytes(session.file().writer);
  w.string(place_of_store(session.store()));
  w.u64(place.inode);
  w.u64(static_cast<std::uint64_t>(place.born_ns));
  const base::Sha256 hash = base::sha256(text);
  WriteId out{};
  std::copy_n(hash.begin(), out.size(), out.begin());
  return out;
}

bool has_object(const Remote& remote, const std::string& key) {
  const auto found = remote.objects().list(key, 1);
  return !found.empty() && found.front().key == key;
}

// Of damage, not of a newer format. The object is not the remote's, or not whole.
bool is_damaged_hold(const Error& e) {
  return e.code() == Errc::corrupted || e.code() == Errc::invalid_argument ||
         e.code() == Errc::wrong_key;
}

std::optional<Hold> hold_if_sound(const Remote& remote, const std::string& key) {
  try {
    return remote.hold(key);
  } catch (const Error& e) {
    if (!is_damaged_hold(e)) throw;
    return std::nullopt;
  }
}

}  // namespace

void put_hold(const Session& session, const PieceList& pieces) {
  const Remote& remote = session.remote();
  const WriteId id = id_of_hold(session);
  Hold hold = hold_if_sound(remote, hold_key(id)).value_or(Hold{});
  hold.id = id;
  hold.time_ns = base::wall_clock_ns();
  hold.place = place_of_store(session.store());
  for (const PieceName& piece : pieces) hold.pieces.push_back(piece.content);
  std::sort(hold.pieces.begin(), hold.pieces.end());
  hold.pieces.erase(std::unique(hold.pieces.begin(), hold.pieces.end()), hold.pieces.end());
  remote.objects().put(hold_key(id), encode_hold(hold, remote.file_seal()));
}

void restore_hold(const Session& session, const PieceList& pieces) {
  if (pieces.empty()) return;
  const auto hold = hold_if_sound(session.remote(), hold_key(id_of_hold(session)));
  const auto is_held = [&](const PieceName& piece) {
    return std::ranges::binary_search(hold->pieces, piece.content);
  };
  if (!hold.has_value() || !std::ranges::all_of(pieces, is_held)) put_hold(session, pieces);
}

std::vector<std::string> holds_of(const Session& session) {
  const Remote& remote = session.remote();
  std::vector<std::string> out;
  const WriteId own = id_of_hold(session), of_writer = session.file().writer;
  if (has_object(remote, hold_key(own))) out.push_back(hold_name(own));
  if (!has_object(remote, hold_key(of_writer))) return out;
  const auto older = hold_if_sound(remote, hold_key(of_writer));
  if (older.has_value() && older->place == place_of_store(session.store())) {
    out.push_back(hold_name(of_writer));
  }
  return out;
}

std::vector<std::string> release_holds(const Session& session) {
  if (store::has_remote_readers(session.store())) {
    fail(Errc::busy,
         "{}: a process has a version open since before the packs were fetched, and reads from the "
         "remote: its hold stays there. Release it when that process has ended",
         session.store().path());
  }
  std::vector<std::string> out = holds_of(session);
  for (const std::string& name : out) session.remote().objects().remove(kHoldPrefix + name);
  return out;
}

std::optional<Hold> read_hold(const Remote& remote, const std::string& key) {
  try {
    return remote.hold(key);
  } catch (const Error& e) {
    if (!is_damaged_hold(e)) throw;
    const std::string name = key.substr(std::string_view(kHoldPrefix).size());
    fail(Errc::corrupted,
         "{}; the next pull of the lazy clone whose hold it is puts it again; if that clone is "
         "gone, {}",
         e.what(),
         parse_hold_name(name).has_value()
             ? fmt::format("`vellum forget {} --hold {}` removes it", remote.objects().url(), name)
             : "remove this object");
  }
}

std::vector<Hold> read_holds(const Remote& remote) {
  const auto listed = [&] { return remote.objects().list(kHoldPrefix, SIZE_MAX); };
  Attempts attempts(remote.objects());
  for (auto objects = listed();;) {
    attempts.begin();
    std::vector<Hold> out;
    for (const ObjectInfo& object : objects) {
      if (auto hold = read_hold(remote, object.key)) out.push_back(std::move(*hold));
    }
    // A copy may have put its hold, and the original may have released the one that it relied on.
    if (objects.empty()) return out;
    auto again = listed();
    if (again == objects) return out;
    objects = std::move(again);
  }
}

void forget_hold(const Remote& remote, const std::string& name) {
  const auto id = parse_hold_name(name);
  if (!id.has_value()) {
    fail(Errc::invalid_argument,
         "'{}' is not the name of a hold: `vellum stat URL` lists the holds", name);
  }
  const std::string key = hold_key(*id);
  if (!has_object(remote, key)) {
    fail(Errc::not_found, "{}: the remote has no hold '{}'", remote.objects().url(), name);
  }
  remote.objects().remove(key);
}

}  // namespace vellum::remote
