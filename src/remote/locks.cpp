#include "remote/locks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <map>
#include <vector>

#include "base/clock.hpp"
#include "base/threads/thread_pool.hpp"
#include "remote/engine/probe.hpp"
#include "remote/needed.hpp"
#include "remote/session/remote_lock.hpp"

namespace vellum::remote {
namespace {

constexpr std::size_t kAtOnce = 1024;  // versions that are looked at or removed together
// A forger may put any number of versions over an object: the oldest are the right ones.
constexpr std::size_t kMaxOldest = 4;
constexpr std::array kContentPrefixes = {kPiecePrefix, kListPrefix, kNamesPrefix};
// Directories of objects that are all needed, and replaced as wholes.
constexpr std::array kReplacedPrefixes = {kHoldPrefix, "store/", "lock/"};

bool is_content(const std::string& key) {
  return std::ranges::any_of(kContentPrefixes, [&](const char* p) { return key.starts_with(p); });
}

// The versions of a needed object to keep locked. Of an object that is named by its content, an
// older version is as good, and perhaps the only one that a forger has not put. Newest first.
std::vector<VersionName> to_lock(const std::vector<ObjectVersion>& versions) {
  std::vector<VersionName> out;
  for (const ObjectVersion& version : versions) {
    if (!version.is_deletion) out.push_back(version.name);
  }
  const bool keeps_older = is_content(versions.front().name.key);
  const std::size_t most = keeps_older ? kMaxOldest + 1 : 1;
  if (out.size() > most)
    out.erase(out.begin() + 1, out.end() - static_cast<std::ptrdiff_t>(most - 1));
  return out;
}

class Renewal {
 public:
  Renewal(const Remote& remote, std::chrono::seconds duration, const ProgressFn& progress)
      : remote_(remote),
        versions_(*remote.objects().versions()),
        until_(versions_.now() + duration),
        least_(versions_.now() + duration * 5 / 8),
        progress_(progress),
        pool_(remote.objects().connections() - 1) {}

  LockRenewal run() {
    const NeededByHead needed = needed_by_newest(remote_);
    for (const char* prefix : kContentPrefixes) visit(prefix, &needed.keys);
    for (const char* prefix : kReplacedPrefixes) visit(prefix, nullptr);
    for (const std::uint64_t number : needed_heads(needed.head)) visit_one(head_key(number));
    lock_waiting();
    report_.extended = extended_;
    return report_;
  }

 private:
  static std::set<std::uint64_t> needed_heads(const Head& head) {
    std::set<std::uint64_t> out;
    if (head.number != 0) out.insert(head.number);
    for (const RemoteVersion& version : head.versions) {
      for (const EmbeddedObject& object : version.embedded) out.insert(object.head);
    }
    return out;
  }

  // `needed`: null: all.
  void visit(const std::string& prefix, const std::set<std::string>* needed) {
    versions_.visit_versions(prefix, [&](const std::vector<ObjectVersion>& versions) {
      if (needed == nullptr || needed->contains(versions.front().name.key)) add(versions);
      return true;
    });
  }
  void visit_one(const std::string& key) {
    versions_.visit_versions(key, [&](const std::vector<ObjectVersion>& versions) {
      if (versions.front().name.key == key) add(versions);
      return false;
    });
  }

  void add(const std::vector<ObjectVersion>& versions) {
    const std::string& key = versions.front().name.key;
    const bool may_go = key.starts_with(kHoldPrefix);  // released
    if (versions.front().is_deletion && may_go) return;
    if (versions.front().is_deletion) ++report_.deleted;
    for (VersionName& version : to_lock(versions)) waiting_.push_back(std::move(version));
    if (waiting_.size() >= kAtOnce) lock_waiting();
  }

  void lock_waiting() {
    pool_.parallel_for(waiting_.size(),
                       [&](std::size_t i, std::size_t) { keep_locked(waiting_[i]); });
    report_.locked += waiting_.size();
    waiting_.clear();
    if (progress_) progress_({report_.locked, report_.locked, "locks"});
  }

  void keep_locked(const VersionName& version) {
    try {
      const auto until = versions_.locked_until(version);
      if (until.has_value() && *until >= least_) return;
      versions_.lock_until(version, until_);
      ++extended_;
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;  // it was removed since
    }
  }

  const Remote& remote_;
  ObjectVersions& versions_;
  const ServerTime until_, least_;
  const ProgressFn& progress_;
  base::ThreadPool pool_;
  std::vector<VersionName> waiting_;
  std::atomic<std::uint64_t> extended_{0};
  LockRenewal report_;
};

}  // namespace

LockRenewal renew_locks(const Remote& remote, std::chrono::seconds duration,
                        const ProgressFn& progress) {
  assert(remote.objects().versions() != nullptr);
  return Renewal(remote, duration, progress).run();
}

void renew_locks_if_due(Session& session) {
  const auto& lock = session.file().lock;
  if (!lock.has_value()) return;
  const Remote& remote = session.remote();
  const std::int64_t now_ns = base::nanoseconds_of(remote.objects().versions()->now());
  const std::int64_t interval_ns = std::chrono::nanoseconds(lock->duration).count() / 16;
  if (now_ns >= lock->renewed_ns && now_ns - lock->renewed_ns < interval_ns) return;
  session.follow_lock_note();
  const LockRenewal renewal = renew_locks(remote, lock->duration, nullptr);
  if (renewal.deleted != 0) session.warn_of_deleted(renewal.deleted);
  session.note_renewed(now_ns);
}

FreedVersions free_old_versions(const Remote& remote, std::chrono::seconds duration,
                                const std::set<std::string>& needed, bool dry_run) {
  ObjectVersions& versions = *remote.objects().versions();
  const ServerTime old = versions.now() - duration;
  FreedVersions out;
  std::vector<VersionName> names;
  std::map<VersionName, std::uint64_t> sizes;
  const auto remove = [&] {
    for (const auto& [name, bytes] : sizes) names.push_back(name);
    std::vector<VersionName> left;
    if (!dry_run) left = versions.remove_versions(names);
    for (const VersionName& name : left) sizes.erase(name);
    for (const auto& [name, bytes] : sizes) out.bytes += bytes;
    out.versions += sizes.size();
    names.clear();
    sizes.clear();
  };
  versions.visit_versions("", [&](const std::vector<ObjectVersion>& of_key) {
    const std::string& key = of_key.front().name.key;
    const bool is_unlocked = key.starts_with(kProbePrefix) || key == kNewestKey;
    // An older version of a needed object may be the right one, under one that was forged.
    if (needed.contains(key)) return true;
    const bool has_content = !std::ranges::all_of(of_key, &ObjectVersion::is_deletion);
    for (const ObjectVersion& version : of_key) {
      const bool is_object = version.is_newest && !version.is_deletion;
      // As long as there is an older version, a deletion hides it.
      const bool may_go = version.is_deletion ? !has_content : is_unlocked || version.put_at <= old;
      if (!is_object && may_go) sizes.emplace(version.name, version.size_bytes);
    }
    if (sizes.size() >= kAtOnce) remove();
    return true;
  });
  remove();
  return out;
}

}  // namespace vellum::remote
