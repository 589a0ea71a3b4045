#include "remote/session/own_objects.hpp"

#include <algorithm>
#include <mutex>

#include "base/fail.hpp"
#include "base/threads/thread_pool.hpp"

namespace vellum::remote {
namespace {

constexpr std::size_t kMaxThreads = 16;

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
  if (list.size_bytes == 0 || remote.embedded(list.content, list.size_bytes).empty()) return;
  put_own(remote.objects(), list_key(list.content), remote.list_bytes(list));
}

}  // namespace

std::vector<PieceName> give_own_pieces(const Remote& remote, const PieceList& pieces) {
  std::vector<PieceName> embedded, lost;
  for (const PieceName& piece : pieces) {
    if (!remote.embedded(piece.content, piece.size_bytes).empty()) embedded.push_back(piece);
  }
  if (embedded.empty()) return lost;
  base::ThreadPool pool(std::min(kMaxThreads, remote.objects().connections()) - 1);
  std::mutex mutex;  // guards `lost`
  pool.parallel_for(embedded.size(), [&](std::size_t i, std::size_t) {
    const PieceName& piece = embedded[i];
    std::vector<std::byte> bytes;
    try {
      bytes = remote.piece(piece).bytes;
    } catch (const Error& e) {
      if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
      const std::lock_guard lock(mutex);
      lost.push_back(piece);
      return;
    }
    put_own(remote.objects(), piece_key(piece.content), bytes);
  });
  return lost;
}

std::vector<std::string> give_own_objects(const Remote& remote, Head& head) {
  std::vector<std::string> damaged;
  for (RemoteVersion& version : head.versions) {
    if (version.embedded.empty()) continue;
    if (!give_own_pieces(remote, remote.list(version.list)).empty()) {
      damaged.push_back(version.ref.name);
    }
    for (const ObjectName& list : {version.list.base, version.list.own}) {
      give_own_list(remote, list);
    }
    version.embedded.clear();
  }
  return damaged;
}

}  // namespace vellum::remote
