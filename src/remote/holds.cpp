#include "remote/holds.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/files/real_path.hpp"

namespace vellum::remote {
namespace {

std::string place_of_store(const store::StoreCore& store) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::string out = std::string(host.data()) + ":" + base::real_path(store.path());
  if (out.ends_with(kUnfinishedCloneSuffix)) {
    out.resize(out.size() - std::string_view(kUnfinishedCloneSuffix).size());
  }
  if (out.size() > kMaxHoldPlaceBytes) out.resize(kMaxHoldPlaceBytes);
  return out;
}

}  // namespace

void put_hold(const Session& session, const PieceList& pieces) {
  Hold hold;
  hold.writer = session.file().writer;
  hold.time_ns = base::wall_clock_ns();
  hold.place = place_of_store(session.store());
  for (const PieceName& piece : pieces) hold.pieces.push_back(piece.name);
  std::sort(hold.pieces.begin(), hold.pieces.end());
  hold.pieces.erase(std::unique(hold.pieces.begin(), hold.pieces.end()), hold.pieces.end());
  const Remote& remote = session.remote();
  remote.objects().put(hold_key(hold.writer), encode_hold(hold, remote.store_id()));
}

void restore_hold(const Session& session, const PieceList& pieces) {
  if (pieces.empty() || session.remote().hold(hold_key(session.file().writer)).has_value()) return;
  put_hold(session, pieces);
}

void remove_hold(const Session& session) {
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
    fail(Errc::invalid_argument, "'{}' is no hold: `vellum stat URL` lists them", name);
  }
  const std::string key = hold_key(*writer);
  const auto found = remote.objects().list(key, 1);
  if (found.empty() || found.front().key != key) {
    fail(Errc::not_found, "{}: the remote has no hold '{}'", remote.objects().url(), name);
  }
  remote.objects().remove(key);
}

}  // namespace vellum::remote
