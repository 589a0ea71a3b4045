#include "remote/pieces/seen_objects.hpp"

namespace vellum::remote {

void SeenObjects::look(const Remote& remote, base::ThreadPool& pool,
                       const std::function<void()>& task) {
  if (is_known()) return;
  auto tasks = parts_of_look(remote);
  tasks.push_back(task);
  pool.parallel_for(tasks.size(), [&](std::size_t i, std::size_t) { tasks[i](); });
  finish_look();
}

std::vector<std::function<void()>> SeenObjects::parts_of_look(const Remote& remote) {
  return {[this, &remote] { add_listed(remote, kPiecePrefix); },
          [this, &remote] { add_listed(remote, kListPrefix); }};
}

void SeenObjects::finish_look() {
  const std::lock_guard lock(mutex_);
  is_known_ = true;
}

// A killed pusher may have left names that are not durable.
void SeenObjects::add_listed(const Remote& remote, const char* prefix) {
  const auto objects = remote.objects().list(prefix, SIZE_MAX);
  if (!objects.empty()) remote.objects().make_durable(objects.front().key);
  for (const ObjectInfo& object : objects) add(object.key, object.size_bytes);
}

bool SeenObjects::is_known() const {
  const std::lock_guard lock(mutex_);
  return is_known_;
}

void SeenObjects::forget() {
  const std::lock_guard lock(mutex_);
  is_known_ = false;
  sizes_.clear();
}

bool SeenObjects::has(const std::string& key, std::uint64_t size_bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = sizes_.find(key);
  return at != sizes_.end() && at->second == size_bytes;
}

bool SeenObjects::has(const ListName& list) const {
  for (const ObjectName& object : {list.base, list.own}) {
    if (object.size_bytes != 0 && !has(list_key(object.name), object.size_bytes)) return false;
  }
  return true;
}

bool SeenObjects::has(const PieceName& piece) const {
  return has(piece_key(piece.name), piece.size_bytes);
}

bool SeenObjects::has_damaged(const std::string& key, std::uint64_t size_bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = sizes_.find(key);
  return at != sizes_.end() && at->second != size_bytes;
}

void SeenObjects::add(const std::string& key, std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  sizes_[key] = size_bytes;
}

}  // namespace vellum::remote
