#include "remote/holds.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/files/real_path.hpp"
#include "remote/session/missing_pieces.hpp"

namespace vellum::remote {
namespace {

std::string place_of_store(const store::StoreDirectory& store) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::string out = std::string(host.data()) + ":" + base::real_path(store.path());
  if (out.ends_with(kUnfinishedCloneSuffix)) {
    out.resize(out.size() - std::string_view(kUnfinishedCloneSuffix).size());
  }
  if (out.size() > kMaxHoldPlaceBytes) out.resize(kMaxHoldPlaceBytes);
  return out;
}

// A copy of the store (`cp -r`) has the same writer, but another place in its hold. If that place
// has no lazy clone any more, the store has been moved.
bool is_of_another(const store::StoreDirectory& store, const Hold& hold) {
  const std::string own = place_of_store(store);
  const std::size_t host = own.find(':') + 1;
  if (hold.place == own) return false;
  if (hold.place.compare(0, host, own, 0, host) != 0) return true;
  const std::string path = hold.place.substr(host);
  return has_missing_pieces(store.fs(), path) ||
         has_missing_pieces(store.fs(), path + kUnfinishedCloneSuffix);
}

std::optional<Hold> hold_of_another(const Session& session) {
  const std::string key = hold_key(session.file().writer);
  const auto found = session.remote().objects().list(key, 1);
  if (found.empty() || found.front().key != key) return std::nullopt;
  auto hold = session.remote().hold(key);
  if (!hold.has_value() || !is_of_another(session.store(), *hold)) return std::nullopt;
  return hold;
}

}  // namespace

// A store and its copy share one hold, with the pieces of both.
void put_hold(const Session& session, const PieceList& pieces) {
  Hold hold;
  if (auto other = hold_of_another(session)) hold.pieces = std::move(other->pieces);
  hold.writer = session.file().writer;
  hold.time_ns = base::wall_clock_ns();
  hold.place = place_of_store(session.store());
  for (const PieceName& piece : pieces) hold.pieces.push_back(piece.content);
  std::sort(hold.pieces.begin(), hold.pieces.end());
  hold.pieces.erase(std::unique(hold.pieces.begin(), hold.pieces.end()), hold.pieces.end());
  const Remote& remote = session.remote();
  remote.objects().put(hold_key(hold.writer), encode_hold(hold, remote.file_seal()));
}

void restore_hold(const Session& session, const PieceList& pieces) {
  if (pieces.empty() || session.remote().hold(hold_key(session.file().writer)).has_value()) return;
  put_hold(session, pieces);
}

void remove_hold(const Session& session) {
  if (hold_of_another(session).has_value()) return;
  session.remote().objects().remove(hold_key(session.file().writer));
}

std::vector<Hold> read_holds(const Remote& remote) {
  std::vector<Hold> out;
  for (const ObjectInfo& object : remote.objects().list(kHoldPrefix, SIZE_MAX)) {
    if (auto hold = remote.hold(object.key)) out.push_back(std::move(*hold));
  }
  return out;
}

void forget_hold(const Remote& remote, const std::string& name) {
  const auto writer = parse_hold_name(name);
  if (!writer.has_value()) {
    fail(Errc::invalid_argument,
         "'{}' is not the name of a hold: `vellum stat URL` lists the holds", name);
  }
  const std::string key = hold_key(*writer);
  const auto found = remote.objects().list(key, 1);
  if (found.empty() || found.front().key != key) {
    fail(Errc::not_found, "{}: the remote has no hold '{}'", remote.objects().url(), name);
  }
  remote.objects().remove(key);
}

}  // namespace vellum::remote
