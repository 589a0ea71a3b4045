#include "remote/session/own_objects.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace vellum::remote {
namespace {

// A killed process may have left the object, perhaps not durable.
void put_own(ObjectStore& objects, const std::string& key, std::span<const std::byte> bytes) {
  if (objects.put_if_absent(key, bytes)) return;
  bool is_sound = false;
  try {
    is_sound = std::ranges::equal(objects.get(key, bytes.size()), bytes);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
  }
  if (is_sound) return objects.make_durable(key);
  objects.put(key, bytes);
}

void give_own_list(const Remote& remote, const ObjectName& list) {
  if (list.size_bytes == 0 || !remote.embedded(list.content, list.size_bytes)) return;
  put_own(remote.objects(), list_key(list.content), remote.list_bytes(list));
}

}  // namespace

void give_own_object(const Remote& remote, const PieceName& piece) {
  if (!remote.embedded(piece.content, piece.size_bytes)) return;
  put_own(remote.objects(), piece_key(piece.content), remote.piece(piece).bytes);
}

void give_own_objects(const Remote& remote, Head& head) {
  for (RemoteVersion& version : head.versions) {
    if (version.embedded.empty()) continue;
    for (const PieceName& piece : remote.list(version.list)) give_own_object(remote, piece);
    for (const ObjectName& list : {version.list.base, version.list.own}) {
      give_own_list(remote, list);
    }
    version.embedded.clear();
  }
}

}  // namespace vellum::remote
