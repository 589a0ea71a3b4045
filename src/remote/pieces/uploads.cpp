#include "remote/pieces/uploads.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace vellum::remote {
namespace {

constexpr std::uint64_t kMaxKeptBytes = 8u << 20;
constexpr std::chrono::seconds kCopyInterval{60}, kLookInterval{60};

}  // namespace

void SeenObjects::load(const Remote& remote, EmbeddedObjects embedded, base::ThreadPool& pool,
                       const std::function<void()>& task) {
  if (is_known()) return;
  auto tasks = load_tasks(remote, std::move(embedded));
  tasks.push_back(task);
  pool.parallel_for(tasks.size(), [&](std::size_t i, std::size_t) { tasks[i](); });
  finish_loading();
}

std::vector<std::function<void()>> SeenObjects::load_tasks(const Remote& remote,
                                                           EmbeddedObjects embedded) {
  auto out = look_tasks(remote, std::move(embedded));
  for (const char* const prefix : {kPiecePrefix, kListPrefix}) {
    out.push_back([this, &remote, prefix] { add_listed(remote, prefix); });
  }
  return out;
}

// Two small requests for each head: a listing would have no ids, and all heads between them.
std::vector<std::function<void()>> SeenObjects::look_tasks(const Remote& remote,
                                                           EmbeddedObjects embedded) {
  std::vector<std::function<void()>> out;
  std::ranges::sort(embedded);  // the last object of each head is last
  for (std::size_t i = 0; i < embedded.size(); ++i) {
    if (i + 1 < embedded.size() && embedded[i + 1].head == embedded[i].head &&
        embedded[i + 1].head_id == embedded[i].head_id) {
      continue;
    }
    out.push_back([this, &remote, last = embedded[i]] { has(remote, last); });
  }
  return out;
}

// Makes it durable, since a killed push may have left it.
void SeenObjects::look_for(const Remote& remote, const std::string& key, std::uint64_t size_bytes) {
  const bool is_there = remote.objects().has(key, size_bytes);
  if (is_there) remote.objects().make_durable(key);
  add(key, is_there ? size_bytes : 0);
}

bool SeenObjects::has(const Remote& remote, const EmbeddedObject& object) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = heads_.find(object.head);
    if (at != heads_.end() && at->second.id != object.head_id) return false;
    if (at != heads_.end() && at->second.size_bytes >= end_of(object)) return true;
  }
  if (!remote.has_embedded(object)) return false;
  const std::lock_guard lock(mutex_);
  auto& head = heads_[object.head];
  head.id = object.head_id;
  head.size_bytes = std::max(head.size_bytes, end_of(object));
  return true;
}

void SeenObjects::add_head(const Head& head) {
  SeenHead seen{id_start(head.write_id), 0};
  for (const RemoteVersion& version : head.versions) {
    for (const EmbeddedObject& object : version.embedded) {
      if (object.head == head.number) seen.size_bytes = std::max(seen.size_bytes, end_of(object));
    }
  }
  if (seen.size_bytes == 0) return;
  const std::lock_guard lock(mutex_);
  heads_[head.number] = seen;
}

void SeenObjects::finish_loading() {
  const std::lock_guard lock(mutex_);
  is_known_ = true;
}

// A killed push may have left objects that are not durable.
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
  heads_.clear();
  looked_.reset();
  last_look_.reset();
}

bool SeenObjects::wants_copy() const {
  const std::lock_guard lock(mutex_);
  return !copied_.has_value() || std::chrono::steady_clock::now() - *copied_ >= kCopyInterval;
}

void SeenObjects::note_copy() {
  const std::lock_guard lock(mutex_);
  copied_ = std::chrono::steady_clock::now();
}

bool SeenObjects::wants_look() const {
  const std::lock_guard lock(mutex_);
  return !looked_.has_value() || std::chrono::steady_clock::now() - *looked_ >= kLookInterval;
}

std::optional<SeenObjects::Look> SeenObjects::last_look() const {
  const std::lock_guard lock(mutex_);
  return last_look_;
}

void SeenObjects::note_look(const Look& look) {
  const std::lock_guard lock(mutex_);
  looked_ = std::chrono::steady_clock::now();
  last_look_ = look;
}

bool SeenObjects::has(const std::string& key, std::uint64_t size_bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = sizes_.find(key);
  return at != sizes_.end() && at->second == size_bytes;
}

bool SeenObjects::has(const ListName& list) const {
  for (const ObjectName& object : {list.base, list.own}) {
    if (object.size_bytes != 0 && !has(list_key(object.content), object.size_bytes)) return false;
  }
  return true;
}

bool SeenObjects::has(const PieceName& piece) const {
  return has(piece_key(piece.content), piece.size_bytes);
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

Uploads::Uploads(const Remote& remote, SeenObjects& seen_objects, base::ThreadPool& pool,
                 std::function<void()> before_large, bool dry_run)
    : remote_(remote),
      seen_objects_(seen_objects),
      pool_(pool),
      before_large_(std::move(before_large)),
      dry_run_(dry_run) {}

bool Uploads::keep(const std::string& key, std::vector<std::byte>& bytes) {
  const std::lock_guard lock(mutex_);
  if (kept_bytes_ + bytes.size() > kMaxKeptBytes) return false;
  kept_bytes_ += bytes.size();
  kept_.emplace(key, std::move(bytes));
  return true;
}

void Uploads::add(const std::string& key, std::vector<std::byte> bytes) {
  assert(!bytes.empty());
  if (keep(key, bytes)) return;
  if (before_large_) std::call_once(asked_, before_large_);
  put(key, bytes);
}

std::map<std::string, std::vector<std::byte>> Uploads::take_small(std::uint64_t most_bytes) {
  std::vector<std::string> keys;
  for (const auto& [key, bytes] : kept_) {
    if (!seen_objects_.has_damaged(key, bytes.size())) keys.push_back(key);
  }
  std::ranges::sort(keys, {}, [&](const std::string& key) { return kept_.at(key).size(); });
  std::map<std::string, std::vector<std::byte>> out;
  for (const std::string& key : keys) {
    const std::uint64_t size_bytes = kept_.at(key).size();
    if (size_bytes > most_bytes) break;
    most_bytes -= size_bytes;
    out.insert(kept_.extract(key));
  }
  return out;
}

// False: the object already existed.
bool Uploads::upload(const std::string& key, std::span<const std::byte> bytes) {
  if (dry_run_) return !seen_objects_.has(key, bytes.size());
  if (!seen_objects_.has_damaged(key, bytes.size())) {
    return remote_.objects().put_if_absent(key, bytes);
  }
  remote_.objects().put(key, bytes);
  return true;
}

void Uploads::put(const std::string& key, std::span<const std::byte> bytes) {
  const bool is_new = upload(key, bytes);
  if (is_new) seen_objects_.add(key, bytes.size());
  const std::lock_guard lock(mutex_);
  if (!is_new) {
    found_.emplace(key, bytes.size());
    return;
  }
  ++objects_;
  bytes_ += bytes.size();
}

bool Uploads::has_found_damage() const {
  assert(kept_.empty());  // after finish()
  const std::vector<std::pair<std::string, std::uint64_t>> found(found_.begin(), found_.end());
  if (!seen_objects_.is_known()) {
    pool_.parallel_for(found.size(), [&](std::size_t i, std::size_t) {
      seen_objects_.look_for(remote_, found[i].first, found[i].second);
    });
  }
  return std::ranges::any_of(found, [&](const auto& object) {
    return seen_objects_.has_damaged(object.first, object.second);
  });
}

void Uploads::finish(const std::vector<std::function<void()>>& tasks) {
  const std::map<std::string, std::vector<std::byte>> kept = std::exchange(kept_, {});
  std::vector<std::function<void()>> all = tasks;
  if (dry_run_) {
    pool_.parallel_for(all.size(), [&](std::size_t i, std::size_t) { all[i](); });
    all.clear();
  }
  for (const auto& [key, bytes] : kept) {
    all.push_back([this, &key = key, &bytes = bytes] { put(key, bytes); });
  }
  pool_.parallel_for(all.size(), [&](std::size_t i, std::size_t) { all[i](); });
}

}  // namespace vellum::remote
