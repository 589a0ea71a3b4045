#include "remote/repair_remote.hpp"

#include <set>

#include "base/fail.hpp"
#include "remote/push.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/session/remote_keys.hpp"

namespace vellum::remote {

std::vector<std::string> versions_to_mend_with(const store::StoreDirectory& store, const Head& head,
                                               const RemoteDamage& damage) {
  std::vector<std::string> out;
  for (const std::string& name : damage.versions) {
    const RemoteVersion* const there = head.find(name);
    if (there == nullptr) continue;
    try {
      const bool is_here =
          there->is_branch ? store::has_branch(store, name)
                           : store::has_snapshot(store, name) &&
                                 store::read_snapshot(store, name).version == there->ref.version;
      if (is_here) out.push_back(name);
    } catch (const Error& e) {  // the store's own is damaged, too
      if (e.code() != Errc::corrupted && e.code() != Errc::io && e.code() != Errc::not_found) throw;
    }
  }
  return out;
}

namespace {

constexpr int kMaxRounds = 3;

// The damaged versions that the store has.
std::set<std::string> names_to_send(const store::StoreDirectory& store,
                                    const std::vector<RemoteDamage>& damages) {
  std::set<std::string> out;
  for (const RemoteDamage& damage : damages) {
    for (const std::string& name : damage.versions) {
      if (store::has_snapshot(store, name) || store::has_branch(store, name)) out.insert(name);
    }
  }
  return out;
}

// A push would take a damaged object for an existing one. A damaged hold still keeps gc from deleting
// what a lazy clone needs.
void remove_damaged(const Remote& remote, const std::vector<RemoteDamage>& damages) {
  for (const RemoteDamage& damage : damages) {
    if (!damage.versions.empty()) remote.objects().remove(damage.object);
  }
}

// Pushes each version on its own: one that the remote refuses does not stop the others.
void send(Session& session, const std::set<std::string>& names, const ProgressFn& progress,
          RemoteRepairReport& report) {
  SeenObjects seen_objects;
  for (const std::string& name : names) {
    try {
      const PushReport pushed = push(session, {{name}, false}, progress,
                                     {.seen_objects = &seen_objects, .uses_embedded = false});
      report.objects_uploaded += pushed.objects_uploaded;
      report.bytes_uploaded += pushed.bytes_uploaded;
    } catch (const Error& e) {
      if (e.code() != Errc::already_exists && e.code() != Errc::busy) throw;
    }
  }
}

}  // namespace

RemoteRepairReport repair_remote(store::StoreDirectory& store, const std::string& url,
                                 const ProgressFn& progress, std::shared_ptr<ObjectStore> objects) {
  if (objects == nullptr) objects = open_object_store(store.fs(), url);
  Session session(store, know_remote(store, url), objects, SlotsFrom::remote_or_store);
  objects = session.opened();
  const bool had_bad_superblock = session.restore_superblock();
  const bool had_no_slots = session.follow_key_slots(true);
  const Remote& remote = session.remote();
  const bool had_bad_head = remote.restore_newest_head();
  const ObjectName table = remote.newest_head().head.table;
  if (table.size_bytes != 0) remote.restore_table(table);
  const Remote uncached(*objects, store.store_seal());
  RemoteRepairReport report;
  report.found = report.left = verify_remote(uncached, true, progress).damages;
  if (had_bad_superblock) report.found.push_back({kSuperblockKey, "unusable: put again", {}});
  if (had_bad_head) {
    report.found.push_back(
        {head_key(remote.newest_number().value_or(0)), "damaged: put again", {}});
  }
  if (had_no_slots) report.found.push_back({kKeySlotsKey, "unusable: put again", {}});
  report.warnings = session.warnings();
  // A piece that only a damaged list has is checked in the next round, when the list is repaired.
  for (int i = 0; i < kMaxRounds; ++i) {
    const std::set<std::string> names = names_to_send(store, report.left);
    if (names.empty()) break;
    remove_damaged(remote, report.left);
    send(session, names, progress, report);
    report.left = verify_remote(uncached, true, progress).damages;
  }
  return report;
}

}  // namespace vellum::remote
