#include "remote/upkeep.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <mutex>
#include <set>

#include "base/fail.hpp"
#include "base/threads/thread_pool.hpp"
#include "base/try_to.hpp"
#include "remote/engine/attempts.hpp"
#include "remote/engine/probe.hpp"
#include "remote/holds.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/locks.hpp"
#include "remote/needed.hpp"
#include "remote/pieces/known_pieces.hpp"
#include "remote/pieces/version_records.hpp"
#include "remote/session/own_objects.hpp"
#include "remote/session/remote_lock.hpp"

namespace vellum::remote {
namespace {

constexpr std::size_t kEverything = SIZE_MAX;
constexpr std::size_t kMaxVerifying = 16;  // each may hold a piece in memory
constexpr int kMaxChanges = 1000;

std::size_t extra_threads(const Remote& remote, std::size_t most) {
  return std::min(most, remote.objects().connections()) - 1;
}

std::vector<ObjectInfo> content_objects(const Remote& remote) {
  std::vector<ObjectInfo> out = remote.objects().list(kListPrefix, kEverything);
  for (const char* prefix : {kPiecePrefix, kNamesPrefix}) {
    for (ObjectInfo& object : remote.objects().list(prefix, kEverything)) {
      out.push_back(std::move(object));
    }
  }
  return out;
}

std::optional<ContentName> content_name(const std::string& key) {
  for (const char* prefix : {kListPrefix, kPiecePrefix, kNamesPrefix}) {
    if (const auto name = parse_content_key(key, prefix)) return name;
  }
  return std::nullopt;
}

StoredHead require_head(const Remote& remote) {
  StoredHead out = remote.newest_head();
  if (out.head.number == 0)
    fail(Errc::not_found, "{}: the remote has no versions yet", remote.objects().url());
  return out;
}

// Publishes a changed copy of the newest head, and returns it. Errc::busy: another pusher was
// faster each time.
template <typename Change>
Head publish_change(const Remote& remote, const Change& change) {
  for (int i = 0; i < kMaxChanges; ++i) {
    StoredHead base = require_head(remote);
    Head next = base.head;
    change(next);
    if (const auto table = remote.make_table(base)) {
      remote.objects().put_if_absent(table->key, table->bytes);
      table->use(base);
    }
    if (auto published = remote.publish(base, std::move(next))) return std::move(published->head);
  }
  fail(Errc::busy, "{}: other stores have pushed {} times meanwhile", remote.objects().url(),
       kMaxChanges);
}

class Verifier {
 public:
  Verifier(const Remote& remote, bool read_data, const ProgressFn& progress)
      : remote_(remote),
        read_data_(read_data),
        progress_(progress),
        pool_(extra_threads(remote, read_data ? kMaxVerifying : kEverything)) {}

  RemoteVerifyReport run() {
    const Head head = remote_.newest_head().head;
    report_.versions = head.versions.size();
    std::map<ListName, std::vector<std::string>> lists;  // lists of one base are consecutive
    std::map<ObjectName, std::vector<std::string>> bases;
    for (const RemoteVersion& name : head.versions) {
      if (name.list.own.size_bytes != 0) lists[name.list].push_back(name.ref.name);
      if (name.list.base.size_bytes != 0) bases[name.list.base].push_back(name.ref.name);
    }
    std::set<ObjectName> objects;
    for (const auto& base : bases) objects.insert(base.first);
    for (const auto& list : lists) objects.insert(list.first.own);
    report_.lists = objects.size();
    ObjectName base;
    for (const auto& [list, users] : lists) {
      if (list.base != base) read_base(base = list.base, bases[list.base]);
      read_list(list, users);
    }
    for (const ObjectInfo& object : remote_.objects().list(kPiecePrefix, kEverything)) {
      sizes_[object.key] = object.size_bytes;
    }
    if (has_embedded(head.versions)) {
      for (const ObjectInfo& object : remote_.objects().list(kHeadPrefix, kEverything)) {
        sizes_[object.key] = object.size_bytes;
      }
    }
    report_.pieces = users_.size();
    const std::vector<std::pair<PieceName, std::set<std::string>>> pieces(users_.begin(),
                                                                          users_.end());
    constexpr std::size_t kStep = 64;
    for (std::size_t first = 0; first < pieces.size(); first += kStep) {
      const std::size_t count = std::min(kStep, pieces.size() - first);
      pool_.parallel_for(count, [&](std::size_t i, std::size_t) {
        check_piece(pieces[first + i].first, pieces[first + i].second);
      });
      if (progress_) progress_({first + count, pieces.size(), "pieces"});
    }
    check_pages(head);
    if (!report_.damages.empty()) leave_out_removed();
    check_holds();
    std::sort(report_.damages.begin(), report_.damages.end(),
              [](const RemoteDamage& a, const RemoteDamage& b) { return a.object < b.object; });
    return report_;
  }

 private:
  void read_base(const ObjectName& base, const std::vector<std::string>& users) {
    try {
      remote_.base_list(base);
    } catch (const Error& e) {
      bad_bases_.insert(base);
      note(list_key(base.content), e, users);
    }
  }

  void read_list(const ListName& list, const std::vector<std::string>& users) {
    try {
      if (bad_bases_.contains(list.base)) return static_cast<void>(remote_.list_bytes(list.own));
      for (const PieceName& piece : remote_.list(list)) {
        users_[piece].insert(users.begin(), users.end());
      }
    } catch (const Error& e) {
      note(list_key(list.own.content), e, users);
    }
  }

  void check_piece(const PieceName& name, const std::set<std::string>& users) {
    const std::string key = piece_key(name.content);
    try {
      if (!is_in_head(name)) require_size(key, name.size_bytes);
      const auto records = remote_.piece_index(name);
      std::uint64_t bytes_read = name.index_bytes;
      if (name.index_bytes + records_bytes(records) != name.size_bytes) {
        fail(Errc::corrupted, "{}: the records are not as long as the index says",
             remote_.name_of(key));
      }
      if (read_data_) {
        bytes_read = name.size_bytes;
        check_records(name);
      }
      const std::lock_guard lock(mutex_);
      report_.records += records.size();
      report_.bytes_read += bytes_read;
      known_.add(name, records);
    } catch (const Error& e) {
      note(key, e, {users.begin(), users.end()});
    }
  }

  // Checks the page maps of the undamaged versions. Reads from the remote only, without a cache.
  void check_pages(const Head& head) {
    std::set<std::string> damaged;
    for (const RemoteDamage& damage : report_.damages) {
      damaged.insert(damage.versions.begin(), damage.versions.end());
    }
    if (damaged.size() == head.versions.size()) return;
    RemoteOptions options;
    options.cache_directory = "";
    const auto store = open_head(
        base::posix_fs(), read_superblock(remote_.objects()), remote_.seal().keys, head, options,
        std::shared_ptr<ObjectStore>(std::shared_ptr<void>(), &remote_.objects()));
    for (const RemoteVersion& name : head.versions) {
      if (damaged.contains(name.ref.name) || name.list.own.size_bytes == 0) continue;
      try {
        known_.require_records(remote_.list(name.list), slots_of_version(*store, name.ref.version));
      } catch (const Error& e) {
        note(list_key(name.list.own.content), e, {name.ref.name});
      }
    }
  }

  // Others may have removed versions, and gc their objects, since the head was read.
  void leave_out_removed() {
    NeededByHead now;
    try {
      now = needed_by_newest(remote_);
    } catch (const Error& e) {
      if (e.code() != Errc::corrupted) throw;
      return;  // a list is damaged
    }
    std::erase_if(report_.damages, [&](const RemoteDamage& damage) {
      const bool is_named = std::ranges::any_of(
          damage.versions, [&](const std::string& name) { return now.head.find(name) != nullptr; });
      return !now.keys.contains(damage.object) &&
             (!is_named || damage.object.starts_with(kPiecePrefix));
    });
  }

  // A damaged one ends each gc.
  void check_holds() {
    for (const ObjectInfo& object : remote_.objects().list(kHoldPrefix, kEverything)) {
      try {
        read_hold(remote_, object.key);
      } catch (const Error& e) {
        note(object.key, e, {});
      }
    }
  }

  bool is_in_head(const PieceName& name) const {
    return std::ranges::any_of(remote_.embedded(name.content, name.size_bytes),
                               [&](const EmbeddedObject& object) {
                                 const auto head = sizes_.find(head_key(object.head));
                                 return head != sizes_.end() && head->second >= end_of(object);
                               });
  }

  void require_size(const std::string& key, std::uint64_t size_bytes) const {
    const auto at = sizes_.find(key);
    if (at == sizes_.end()) fail(Errc::not_found, "{}: missing", remote_.name_of(key));
    if (at->second == size_bytes) return;
    fail(Errc::corrupted, "{}: {} bytes, and not the {} that are expected", remote_.name_of(key),
         at->second, size_bytes);
  }

  void check_records(const PieceName& name) const {
    remote_.require_records(name, remote_.piece(name), [](const PieceRecord&) { return true; });
  }

  // Records a damage; merges it with one of the same object. Rethrows other errors. REQUIRES:
  // called in the handler of `e`.
  void note(const std::string& key, const Error& e, const std::vector<std::string>& versions) {
    assert(std::current_exception() != nullptr);
    if (e.code() != Errc::corrupted && e.code() != Errc::not_found) throw;
    const std::lock_guard lock(mutex_);
    auto& damages = report_.damages;
    auto at = std::ranges::find(damages, key, &RemoteDamage::object);
    if (at == damages.end()) {
      at = damages.insert(at, {key, e.code() == Errc::not_found ? "missing" : e.what(), {}});
    }
    std::set<std::string> users(at->versions.begin(), at->versions.end());
    users.insert(versions.begin(), versions.end());
    at->versions.assign(users.begin(), users.end());
  }

  const Remote& remote_;
  const bool read_data_;
  const ProgressFn& progress_;
  base::ThreadPool pool_;
  std::set<ObjectName> bad_bases_;
  std::map<PieceName, std::set<std::string>> users_;
  std::map<std::string, std::uint64_t> sizes_;  // of the existing pieces, and of heads with pieces
  std::mutex mutex_;                            // guards the members below
  RemoteVerifyReport report_;
  KnownPieces known_;
};

}  // namespace

RemoteVerifyReport verify_remote(const Remote& remote, bool read_data, const ProgressFn& progress) {
  return Verifier(remote, read_data, progress).run();
}

bool keeps_older_states(ObjectStore& objects) {
  ObjectVersions* const versions = objects.versions();
  bool out = false;
  if (versions == nullptr) return out;
  base::try_to([&] {
    versions->require_versions();
    versions->visit_versions({}, [&](const auto&) {
      out = true;
      return false;
    });
  });
  return out;
}

RemoteSpace space_of_remote(const Remote& remote) {
  const auto [head, needed] = needed_by_newest(remote);
  RemoteSpace out;
  out.generation = head.generation;
  for (const ObjectInfo& object : remote.objects().list(kHeadPrefix, kEverything)) {
    ++out.heads;
    out.object_bytes += object.size_bytes;
    if (parse_head_key(object.key) == head.number) out.needed_bytes += object.size_bytes;
  }
  for (const RemoteVersion& version : head.versions) {
    for (const EmbeddedObject& object : version.embedded) {
      if (object.head != head.number) out.needed_bytes += object.size_bytes;
    }
  }
  out.holds = read_holds(remote);
  for (const ObjectInfo& object : content_objects(remote)) {
    ++out.objects;
    out.object_bytes += object.size_bytes;
    if (!needed.contains(object.key)) continue;
    ++out.needed_objects;
    out.needed_bytes += object.size_bytes;
  }
  return out;
}

namespace {

void erase_names(const Remote& remote, Head& head, const std::vector<std::string>& names,
                 bool may_be_gone = false) {
  const std::set<std::string> gone(names.begin(), names.end());
  for (const std::string& name : gone) {
    if (!may_be_gone && head.find(name) == nullptr) {
      fail(Errc::not_found, "{}: the remote has no version '{}'", remote.objects().url(), name);
    }
  }
  std::erase_if(head.versions, [&](const RemoteVersion& n) { return gone.contains(n.ref.name); });
}

}  // namespace

void forget_names(const Remote& remote, const std::vector<std::string>& names) {
  // A head of this call may have been published although publish() cannot tell: others have based
  // heads on it, and a gc has deleted it. The next attempt then finds the names gone.
  bool may_be_gone = false;
  follow_lock_note(remote);
  publish_change(remote, [&](Head& next) {
    erase_names(remote, next, names, may_be_gone);
    may_be_gone = true;
  });
}

RemoteFreeable freeable_without(const Remote& remote, const std::vector<std::string>& names) {
  std::optional<NeededKeys> now, later;
  for (Attempts attempts(remote.objects()); !now.has_value() || !later.has_value();) {
    attempts.begin();
    Head head = require_head(remote).head;
    now = needed_keys(remote, head);
    erase_names(remote, head, names);
    later = needed_keys(remote, head);
  }
  RemoteFreeable out;
  for (const ObjectInfo& object : content_objects(remote)) {
    if (!now->contains(object.key) || later->contains(object.key)) continue;
    ++out.objects;
    out.bytes += object.size_bytes;
  }
  return out;
}

namespace {

constexpr std::size_t kMinRemoved = 100, kMaxRemoved = 1000;  // by one call

// In any order, by several calls at once.
void remove_objects(const Remote& remote, std::span<const std::string> keys,
                    const ProgressFn& progress) {
  base::ThreadPool pool(extra_threads(remote, kEverything));
  const std::size_t threads = pool.workers() + 1;
  const std::size_t part = std::clamp(keys.size() / threads, kMinRemoved, kMaxRemoved);
  for (std::size_t first = 0; first < keys.size();) {
    const auto round = keys.subspan(first, std::min(keys.size() - first, part * threads));
    pool.parallel_for((round.size() + part - 1) / part, [&](std::size_t i, std::size_t) {
      const auto from = round.subspan(i * part);
      remote.objects().remove_all(from.first(std::min(from.size(), part)));
    });
    first += round.size();
    if (progress) progress({first, keys.size(), "objects"});
  }
}

// A pusher that finds the base of its head, of an earlier round, knows that its head is not one that
// was deleted before.
void remove_heads(const Remote& remote, const std::set<std::uint64_t>& numbers) {
  std::array<std::vector<std::string>, kDeletionRounds> rounds;
  for (const std::uint64_t number : numbers) {
    rounds[deletion_round(number)].push_back(head_key(number));
  }
  for (const auto& keys : rounds) {
    if (!keys.empty()) remove_objects(remote, keys, nullptr);
  }
}

}  // namespace

namespace {

void renew_locks(const Remote& remote, std::chrono::seconds duration, const ProgressFn& progress,
                 RemoteGcReport& report) {
  const LockRenewal renewal = remote::renew_locks(remote, duration, progress);
  report.locks_extended = renewal.extended;
  for (std::string& text : warnings_of(renewal, remote.objects().url())) {
    report.warnings.push_back(std::move(text));
  }
}

void add_freed(RemoteGcReport& report, const FreedVersions& freed) {
  report.old_versions_removed = freed.versions;
  report.old_bytes_removed = freed.bytes;
}

}  // namespace

RemoteGcReport collect_remote(const Remote& remote, bool dry_run, const ProgressFn& progress) {
  Head boundary;
  RemoteGcReport report;
  const auto lock = follow_lock_note(remote, &report.warnings);
  std::optional<NeededKeys> needed;
  for (Attempts attempts(remote.objects()); !needed.has_value();) {
    attempts.begin();
    boundary = require_head(remote).head;
    // Reads the lists before it publishes the boundary: an unreadable list ends the gc.
    needed = needed_keys(remote, boundary);
    if (dry_run || !needed.has_value()) continue;
    boundary = publish_change(remote, [&](Head& next) {
      report.damaged = give_own_objects(remote, next);
      if (next.generation == UINT32_MAX) fail(Errc::unsupported, "no generation is left");
      ++next.generation;
    });
    needed = needed_keys(remote, boundary);
  }
  const std::uint32_t generation = dry_run ? UINT32_MAX : boundary.generation;
  std::vector<std::string> garbage;
  for (const ObjectInfo& object : content_objects(remote)) {
    const auto name = content_name(object.key);
    const bool is_garbage =
        name.has_value() && name->generation < generation && !needed->contains(object.key);
    (is_garbage ? report.objects_removed : report.objects_left) += 1;
    (is_garbage ? report.bytes_removed : report.bytes_left) += object.size_bytes;
    if (is_garbage) garbage.push_back(object.key);
  }
  for (const ObjectInfo& object : remote.objects().list(kProbePrefix, kEverything)) {
    garbage.push_back(object.key);
  }
  std::set<std::uint64_t> heads;
  for (const ObjectInfo& object : remote.objects().list(kHeadPrefix, kEverything)) {
    const auto number = parse_head_key(object.key);
    if (!number.has_value() || *number >= boundary.number) continue;
    heads.insert(*number);
  }
  report.heads_removed = heads.size();
  if (lock.has_value()) report.lock = *lock;
  if (dry_run && lock.has_value())
    add_freed(report, free_old_versions(remote, *lock, *needed, true));
  if (dry_run) return report;
  if (lock.has_value()) renew_locks(remote, *lock, progress, report);
  remove_objects(remote, garbage, progress);
  // A head whose witness exists was not deleted: see Head::is_witness.
  for (const std::uint64_t number : remote.witnesses(boundary.earlier_witness)) {
    remote.objects().remove(head_key(number));
    heads.erase(number);
  }
  remove_heads(remote, heads);
  remote.objects().sweep();
  if (lock.has_value()) add_freed(report, free_old_versions(remote, *lock, *needed, false));
  return report;
}

}  // namespace vellum::remote
