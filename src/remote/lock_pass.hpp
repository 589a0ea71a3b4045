// remote/lock_pass.hpp: looks at the lock of each object that a remote needs, in parts.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/threads/thread_pool.hpp"
#include "remote/engine/object_versions.hpp"
#include "remote/needed.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

struct LockRenewal {
  std::uint64_t locked = 0;       // versions of objects that are needed
  std::uint64_t extended = 0;     // of these
  std::uint64_t deleted = 0;      // needed objects that are missing, or have only older versions
  std::uint64_t overwritten = 0;  // objects that are written once, and got another version
  // What could not be read, looked at or extended. The pass goes on without it.
  std::uint64_t failures = 0;
  std::string first_failure;
};
// What a person should know of it, a sentence each.
std::vector<std::string> warnings_of(const LockRenewal& renewal, const std::string& url);

class LockPass {
 public:
  using Clock = std::chrono::steady_clock;

  // Reads what the versions of the newest head need. If a part of that cannot be read, all objects
  // count as needed. `since`: the time of the last pass; later versions count as overwritten.
  // REQUIRES: the objects have versions.
  LockPass(const Remote& remote, std::chrono::seconds duration, std::optional<ServerTime> since);

  // Goes on until this time, and somewhat longer: extends locks with less than five eighths of the
  // duration left. True: it is complete. An object that fails does not end it, but a server that
  // does not answer. REQUIRES: the remote is that of the constructor.
  bool go_on(const Remote& remote, Clock::time_point until, const ProgressFn& progress);

  const LockRenewal& report() const noexcept { return report_; }
  ServerTime begun() const noexcept { return begun_; }

 private:
  struct Part {
    std::string prefix;
    bool is_key = false;  // the only one
  };

  void add_parts(const Head& head);
  bool visit(const Part& part, Clock::time_point until);
  void add(const std::vector<ObjectVersion>& versions);
  std::vector<VersionName> to_lock(const std::vector<ObjectVersion>& versions) const;
  std::optional<VersionName> with_hash(const std::vector<ObjectVersion>& versions) const;
  bool is_overwritten(const std::vector<ObjectVersion>& versions) const;
  void lock_waiting();
  void keep_locked(const VersionName& version);
  void note_failure(const Error& e);
  void finish(const Remote& remote);

  ObjectVersions& versions_;
  const std::chrono::seconds duration_;
  const ServerTime begun_;
  const std::optional<ServerTime> since_;
  base::ThreadPool pool_;
  bool needs_all_ = false;
  NeededKeys needed_;  // that were not visited yet
  std::vector<Part> parts_;
  std::size_t part_ = 0;        // the next one
  std::string after_;           // the last key of it that was visited
  std::set<std::string> gone_;  // needed keys without an object
  std::vector<VersionName> waiting_;
  std::atomic<std::uint64_t> extended_{0};
  std::atomic<int> unanswered_{0};
  std::mutex mutex_;  // guards the failures of the member below while threads run
  LockRenewal report_;
};

}  // namespace vellum::remote
