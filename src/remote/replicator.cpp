#include "remote/replicator.hpp"

#include <algorithm>
#include <cassert>
#include <future>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "base/fail.hpp"
#include "base/threads/start_thread.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/session/remote_keys.hpp"
#include "remote/upkeep.hpp"
#include "store/branch/changed_branch.hpp"
#include "store/catalog/names.hpp"

namespace vellum::remote {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kEndWait{1000};                       // for the last push
constexpr std::chrono::milliseconds kFirstPause{500}, kMaxPause{30'000};  // after failures
constexpr std::chrono::milliseconds kStep{100};     // between two calls of the caller's function
constexpr std::chrono::seconds kCheckInterval{60};  // of a remote without pushes
// Of a pass over the locks, between two pushes.
constexpr std::chrono::milliseconds kLockSlice{500};
// Between two listings of a remote without pushes. The other checks are one small request each.
constexpr std::chrono::hours kListInterval{1};

// Joins the thread of a push, even if the caller's function throws.
struct Joined {
  std::thread& thread;
  ~Joined() { thread.join(); }
};

}  // namespace

Replicator::Replicator(store::StoreDirectory& store, const std::string& url,
                       const ReplicateOptions& options, std::shared_ptr<ObjectStore> objects,
                       RetentionFn forgets)
    : store_(store), options_(options), objects_(std::move(objects)), forgets_(std::move(forgets)) {
  if (options_.interval <= std::chrono::milliseconds(0)) {
    fail(Errc::invalid_argument, "the interval of a replication must be longer than 0 ms");
  }
  remote_ = know_remote(store, url);
  if (objects_ == nullptr) objects_ = open_object_store(store.fs(), url);
  objects_ = opened_objects(store, read_remote_file(store, remote_), std::move(objects_),
                            SlotsFrom::remote);
}

ReplicateState Replicator::run(const ReplicateFn& on_state) {
  for (bool is_running = true; is_running;) {
    const auto start = Clock::now();
    is_running = push_in_background(on_state) && wait(on_state, next_check(start));
  }
  checked_.reset();  // the final report needs a new check of the remote
  ends_ = true;
  push_in_background(nullptr);
  return state();
}

// Half an interval after `start`; after failures, an exponential pause with a random part, so that
// many replicators do not retry at the same time.
Clock::time_point Replicator::next_check(Clock::time_point start) {
  const auto usual = start + options_.interval / 2;
  if (failures_ == 0) return usual;
  const auto max_pause =
      std::min<Clock::duration>(kMaxPause, kFirstPause * (1 << std::min(failures_, 16)));
  std::uniform_int_distribution<Clock::rep> random(max_pause.count() / 2, max_pause.count());
  return std::max(usual, Clock::now() + Clock::duration(random(random_)));
}

// Pushes new versions in a thread and calls `on_state` meanwhile, unless it is null. False:
// `on_state` has returned false. Then, and if it is null, stops the remote's calls after kEndWait.
bool Replicator::push_in_background(const ReplicateFn& on_state) {
  std::packaged_task<void()> task([this] { push_new(); });
  std::future<void> pushing = task.get_future();
  std::thread thread = base::start_thread("pushes commits", std::move(task));
  const Joined joined{thread};
  std::optional<Clock::time_point> end;
  if (on_state == nullptr) end = Clock::now() + kEndWait;
  while (pushing.wait_for(kStep) != std::future_status::ready) {
    update_behind();
    if (!end.has_value() && !on_state(state())) end = Clock::now() + kEndWait;
    if (end.has_value() && Clock::now() >= *end) objects_->stop();
  }
  pushing.get();
  return on_state != nullptr && !end.has_value();
}

// False: `on_state` has returned false.
bool Replicator::wait(const ReplicateFn& on_state, Clock::time_point until) {
  for (;;) {
    update_behind();
    if (!on_state(state())) return false;
    const auto now = Clock::now();
    if (now >= until) return true;
    std::this_thread::sleep_for(std::min<Clock::duration>(until - now, kStep));
  }
}

ReplicateState Replicator::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool Replicator::push_new() {
  std::string failure;
  try {
    failure = push_once();
    failures_ = 0;
  } catch (const Error& e) {
    // not_found: a version was removed meanwhile. The others: the server may recover.
    const bool may_pass = e.code() == Errc::io || e.code() == Errc::not_found ||
                          e.code() == Errc::no_space || e.code() == Errc::corrupted;
    if (!may_pass) throw;
    failure = e.what();
    checked_.reset();  // the remote may have changed
    seen_objects_.forget();
    ++failures_;
  }
  {
    const std::lock_guard lock(mutex_);
    state_.failure = std::move(failure);
  }
  update_behind();
  return state().failure.empty();
}

// The reason why versions are not replicated; empty: all are.
std::string Replicator::push_once() {
  std::erase_if(followed_,
                [&](const auto& followed) { return !store::has_branch(store_, followed.first); });
  const bool is_behind = !find_new().names.empty();
  if (is_behind) note_behind();
  const bool is_due = is_behind || is_check_due();
  if (is_due || lock_passes_.has_begun()) {
    std::string busy;
    const auto session = open_session(busy);
    if (session == nullptr) return busy;
    try {
      if (is_due) push_in(*session);
      if (!ends_) lock_passes_.go_on(*session, Clock::now() + kLockSlice);
    } catch (const Error&) {
      keep_warnings(*session);
      throw;
    }
    keep_warnings(*session);
  }
  const std::lock_guard lock(mutex_);
  behind_since_.reset();
  return refused_.empty() ? "" : refused_.begin()->second;
}

void Replicator::push_in(Session& session) {
  session.follow_slots_there(unopened_slots_, is_check_due());
  bool has_listed = is_check_due() && check_remote(session);
  if (seen_objects_.is_known()) session.follow_key_slots(false);  // also without new versions
  const bool knew_loss = session.has_lost();
  bool has_snapshots = push_fresh(session);
  if (session.has_lost() && !knew_loss) {  // the push has found it: everything is sent again
    checked_.reset();
    has_listed |= check_remote(session);
    has_snapshots |= push_fresh(session);
  }
  if (forgets_ && (has_listed || has_snapshots)) forget_old(session);
  checked_ = Clock::now();
}

void Replicator::keep_warnings(const Session& session) {
  const std::lock_guard lock(mutex_);
  warnings_.insert(warnings_.end(), session.warnings().begin(), session.warnings().end());
}

std::vector<std::string> Replicator::take_warnings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

void Replicator::note_behind() {
  const std::lock_guard lock(mutex_);
  if (!behind_since_.has_value()) behind_since_ = Clock::now();
}

bool Replicator::is_check_due() const {
  return !checked_.has_value() || Clock::now() - *checked_ >= kCheckInterval;
}

// Whether the remote still has the last head that this process has seen there.
bool Replicator::is_unchanged(const Remote& remote) const {
  if (!checked_.has_value() || !seen_objects_.is_known() ||
      Clock::now() - listed_ >= kListInterval) {
    return false;
  }
  const auto known = remote.cached_head();
  return known.has_value() && remote.has_sound_head(*known);
}

// Sets lost_ to the names to push again: snapshots of the head whose objects may be lost, and all
// branches. False: it was enough to look at the newest head.
bool Replicator::check_remote(Session& session) {
  lost_.clear();
  if (is_unchanged(session.remote())) return false;
  listed_ = Clock::now();
  if (seen_objects_.is_known()) session.restore_superblock();  // unknown: the push does it
  const Head head = session.readable_newest_head().head;
  if (session.has_lost()) seen_objects_.forget();
  for (const std::string& name : store::snapshot_names(store_)) {
    if (seen_objects_.is_known() || head.find(name) == nullptr || refused_.contains(name)) continue;
    lost_.insert(name);
  }
  for (const std::string& branch : store_.branch_names()) {
    if (!store::is_staging_name(branch)) lost_.insert(branch);
  }
  return true;
}

// Whether there were new snapshots.
bool Replicator::push_fresh(Session& session) {
  const NewVersions fresh = find_new();
  std::set<std::string> names(fresh.names.begin(), fresh.names.end());
  names.merge(std::exchange(lost_, {}));
  if (names.empty()) return false;
  push_names(session, {names.begin(), names.end()});
  // The remote has another snapshot of a name that it refuses.
  std::vector<std::uint64_t> sent;
  for (std::size_t i = 0; i < fresh.orders.size(); ++i) {
    if (!refused_.contains(fresh.names[i])) sent.push_back(fresh.orders[i]);
  }
  session.note_replicated(sent);
  return !sent.empty();
}

// A snapshot of a branch that is open has been taken from a copy of the branch, with an id of its
// own: only the name tells its branch.
SnapshotsThere Replicator::snapshots_there(const Session& session, const Head& head) const {
  const RemoteFile& file = session.file();
  SnapshotsThere out;
  for (const RemoteVersion& version : head.versions) {
    if (version.is_branch) continue;
    const RemoteVersion* branch = head.find(version.ref.branch);
    if (branch != nullptr && !branch->is_branch) branch = nullptr;
    const bool is_own = version.writer == file.writer &&
                        file.replicated.contains(version.ref.order) &&
                        (branch == nullptr || branch->writer == file.writer);
    if (!is_own) {
      out.others.versions.push_back(version);
    } else if (branch != nullptr && store::has_branch(store_, version.ref.branch)) {
      out.own.versions.push_back(version);
    } else {
      out.orphaned.versions.push_back(version);
    }
  }
  return out;
}

void Replicator::forget_old(Session& session) {
  const std::vector<std::string> gone =
      forgets_(snapshots_there(session, session.newest_head().head));
  if (gone.empty()) return;
  forget_names(session.remote(), gone);
  const std::lock_guard lock(mutex_);
  state_.forgotten += gone.size();
}

// Null, and the reason: another push or pull is active.
std::unique_ptr<Session> Replicator::open_session(std::string& busy) {
  try {
    return std::make_unique<Session>(store_, remote_, objects_);
  } catch (const Error& e) {
    if (e.code() != Errc::busy) throw;
    busy = e.what();
    return nullptr;
  }
}

bool Replicator::is_pushed_branch(const RemoteFile& file, const std::string& branch) const {
  const auto here = store::seen_head(store_.read_branch(branch).journal);
  return std::ranges::any_of(file.branches, [&](const SeenBranch& seen) {
    return seen.name == branch &&
           here == store::SeenHead{seen.branch_id, seen.sequence, seen.time_ns};
  });
}

Replicator::NewVersions Replicator::find_new() const {
  const RemoteFile file = read_remote_file(store_, remote_);
  NewVersions out;
  for (const std::string& name : store::snapshot_names(store_)) {
    const std::uint64_t order = store::read_snapshot(store_, name).order;
    if (file.replicated.contains(order) || refused_.contains(name)) continue;
    out.names.push_back(name);
    out.orders.push_back(order);
  }
  for (const std::string& branch : store_.branch_names()) {
    if (!store::is_staging_name(branch) && !is_pushed_branch(file, branch)) {
      out.names.push_back(branch);
    }
  }
  return out;
}

void Replicator::push_names(Session& session, const std::vector<std::string>& names) {
  assert(!names.empty());
  try {
    const PushReport report = push(session, {names, options_.take_over}, nullptr,
                                   {.seen_objects = &seen_objects_,
                                    .followed = &followed_,
                                    .own_branches_only = true,
                                    .embeds = true});
    const bool is_new =
        std::ranges::any_of(report.versions, [](const auto& v) { return !v.was_there; });
    const std::lock_guard lock(mutex_);
    state_.pushes += is_new ? 1 : 0;
    state_.bytes_uploaded += report.bytes_uploaded;
    for (const PushedVersion& version : report.versions) {
      state_.versions += version.was_there ? 0 : 1;
    }
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
    if (names.size() == 1) {
      refused_.emplace(names.front(), e.what());
      return;
    }
    push_each(session, names);
  }
}

// The remote refuses one of them: the others are pushed without it.
void Replicator::push_each(Session& session, const std::vector<std::string>& names) {
  assert(names.size() > 1);  // otherwise push_names() would call it again
  for (const std::string& name : names) push_names(session, {name});
}

void Replicator::update_behind() {
  const std::lock_guard lock(mutex_);
  state_.behind =
      behind_since_.has_value()
          ? std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - *behind_since_)
          : std::chrono::milliseconds(0);
}

}  // namespace vellum::remote
