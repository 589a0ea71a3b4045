#include "remote/needed.hpp"

#include <algorithm>
#include <set>

#include "base/fail.hpp"
#include "remote/engine/attempts.hpp"
#include "remote/holds.hpp"

namespace vellum::remote {
namespace {

// Nullopt: it is missing, and the newest head does not name it: a gc has begun since `name` was
// read.
std::optional<PieceList> piece_list_unless_gone(const Remote& remote, const ListName& name) {
  try {
    return remote.list(name);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    const Head now = remote.newest_head().head;
    if (std::ranges::find(now.versions, name, &RemoteVersion::list) == now.versions.end()) {
      return std::nullopt;
    }
    fail(Errc::corrupted,
         "{} (it is missing: `vellum verify` names the versions that need it, `vellum repair "
         "--from` uploads it again from a store)",
         e.what());
  }
}

}  // namespace

std::optional<NeededKeys> needed_keys(const Remote& remote, const Head& head) {
  NeededKeys out;
  if (head.table.size_bytes != 0) out.emplace(names_key(head.table.content), head.table.size_bytes);
  std::set<ListName> lists;  // ascending: lists of one base are consecutive
  for (const RemoteVersion& name : head.versions) lists.insert(name.list);
  for (const ListName& list : lists) {
    for (const ObjectName& object : {list.base, list.own}) {
      if (object.size_bytes != 0) out.emplace(list_key(object.content), object.size_bytes);
    }
    const auto pieces = piece_list_unless_gone(remote, list);
    if (!pieces.has_value()) return std::nullopt;
    for (const PieceName& piece : *pieces) out.emplace(piece_key(piece.content), piece.size_bytes);
  }
  for (const Hold& hold : read_holds(remote)) {
    for (const ContentName& piece : hold.pieces) out.emplace(piece_key(piece), 0);
  }
  return out;
}

NeededByHead needed_by_newest(const Remote& remote) {
  for (Attempts attempts(remote.objects());;) {
    attempts.begin();
    Head head = remote.newest_head().head;
    if (auto keys = needed_keys(remote, head)) return {std::move(head), std::move(*keys)};
  }
}

}  // namespace vellum::remote
