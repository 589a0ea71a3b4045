#include "remote/locks.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/threads/thread_pool.hpp"
#include "remote/engine/probe.hpp"

namespace vellum::remote {
namespace {

constexpr std::size_t kAtOnce = 1024;   // versions that are removed together
constexpr std::size_t kInRequest = 64;  // of these
constexpr std::chrono::minutes kRetryPause{10};

}  // namespace

LockRenewal renew_locks(const Remote& remote, std::chrono::seconds duration,
                        const ProgressFn& progress) {
  assert(remote.objects().versions() != nullptr);
  LockPass pass(remote, duration, remote.objects().versions()->now());
  pass.go_on(remote, LockPass::Clock::time_point::max(), progress);
  return pass.report();
}

bool LockPasses::is_due(const Session& session) const {
  const RemoteLock& lock = *session.file().lock;
  const std::int64_t now_ns = base::nanoseconds_of(session.remote().objects().versions()->now());
  const std::int64_t interval_ns = std::chrono::nanoseconds(lock.duration).count() / 16;
  return now_ns < lock.renewed_ns || now_ns - lock.renewed_ns >= interval_ns;
}

void LockPasses::go_on(Session& session, LockPass::Clock::time_point until) {
  const auto& lock = session.file().lock;
  if (!lock.has_value() || session.remote().objects().versions() == nullptr) return;
  if (LockPass::Clock::now() < retry_at_) return;
  if (pass_ == nullptr && !is_due(session)) return;
  const Remote& remote = session.remote();
  try {
    if (pass_ == nullptr) {
      session.follow_lock_note();
      std::optional<ServerTime> since;
      if (lock->renewed_ns != 0) since = base::time_point_of(lock->renewed_ns);
      pass_ = std::make_unique<LockPass>(remote, lock->duration, since);
    }
    if (!pass_->go_on(remote, until, nullptr)) return;
    for (std::string& text : warnings_of(pass_->report(), remote.objects().url())) {
      session.warn(std::move(text));
    }
    session.note_renewed(base::nanoseconds_of(pass_->begun()));
  } catch (const Error& e) {
    session.warn(fmt::format("{}: its locks were not looked at: {}; a later push tries it again",
                             remote.objects().url(), e.what()));
    retry_at_ = LockPass::Clock::now() + kRetryPause;
  }
  pass_.reset();
}

void renew_locks_if_due(Session& session) {
  LockPasses().go_on(session, LockPass::Clock::time_point::max());
}

FreedVersions free_old_versions(const Remote& remote, std::chrono::seconds duration,
                                const NeededKeys& needed, bool dry_run) {
  ObjectVersions& versions = *remote.objects().versions();
  const ServerTime old = versions.now() - duration;
  FreedVersions out;
  base::ThreadPool pool(remote.objects().connections() - 1);
  std::mutex mutex;  // guards `sizes` while threads run
  std::vector<VersionName> names;
  std::map<VersionName, std::uint64_t> sizes;
  const auto remove = [&] {
    for (const auto& [name, bytes] : sizes) names.push_back(name);
    const std::size_t requests = dry_run ? 0 : (names.size() + kInRequest - 1) / kInRequest;
    pool.parallel_for(requests, [&](std::size_t i, std::size_t) {
      const auto part = std::span(names).subspan(i * kInRequest);
      const auto left = versions.remove_versions(part.first(std::min(part.size(), kInRequest)));
      const std::lock_guard lock(mutex);
      for (const VersionName& name : left) sizes.erase(name);
    });
    for (const auto& [name, bytes] : sizes) out.bytes += bytes;
    out.versions += sizes.size();
    names.clear();
    sizes.clear();
  };
  versions.visit_versions({}, [&](const std::vector<ObjectVersion>& of_key) {
    const std::string& key = of_key.front().name.key;
    const bool is_unlocked = key.starts_with(kProbePrefix) || key == kNewestKey;
    const auto named = needed.find(key);
    const bool has_content = !std::ranges::all_of(of_key, &ObjectVersion::is_deletion);
    for (const ObjectVersion& version : of_key) {
      const bool is_object = version.is_newest && !version.is_deletion;
      // As long as there is an older version, a deletion hides it.
      const bool may_go = version.is_deletion ? !has_content : is_unlocked || version.put_at <= old;
      // An older version of a needed object may be the right one, under one that was forged.
      const bool may_be_right =
          named != needed.end() &&
          (named->second == 0 || named->second == version.size_bytes || version.is_deletion);
      if (!is_object && may_go && !may_be_right) sizes.emplace(version.name, version.size_bytes);
    }
    if (sizes.size() >= kAtOnce) remove();
    return true;
  });
  remove();
  return out;
}

}  // namespace vellum::remote
