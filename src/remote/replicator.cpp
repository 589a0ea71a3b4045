#include "remote/replicator.hpp"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "base/fail.hpp"
#include "base/threads/start_thread.hpp"
#include "remote/push.hpp"
#include "remote/session/open_engine.hpp"
#include "store/branch/adopt_version.hpp"
#include "store/catalog/staging_name.hpp"

namespace vellum::remote {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kEndWait{1000};                       // for the last push
constexpr std::chrono::milliseconds kFirstPause{500}, kMaxPause{30'000};  // after failures
constexpr std::chrono::milliseconds kStep{100};     // between two looks at whether to end
constexpr std::chrono::seconds kCheckInterval{60};  // at a remote to which nothing was pushed

// Joins the thread of a push, also where a caller's function throws.
struct Joined {
  std::thread& thread;
  ~Joined() { thread.join(); }
};

}  // namespace

Replicator::Replicator(store::StoreDirectory& store, const std::string& url,
                       const ReplicateOptions& options, std::shared_ptr<ObjectStore> objects)
    : store_(store), options_(options), objects_(std::move(objects)) {
  if (options_.interval <= std::chrono::milliseconds(0)) {
    fail(Errc::invalid_argument, "an interval of a replication is longer than 0 ms");
  }
  remote_ = know_remote(store, url);
  if (objects_ == nullptr) objects_ = open_object_store(store.fs(), url);
}

ReplicateState Replicator::run(const ReplicateFn& on_state) {
  for (bool is_running = true; is_running;) {
    const auto start = Clock::now();
    is_running = push_in_background(on_state) && wait(on_state, next_check(start));
  }
  checked_.reset();  // the last word is about the remote as it is
  push_in_background(nullptr);
  return state();
}

// Twice in each interval; after failures later and later, and at random, so that many do not come
// back at once.
Clock::time_point Replicator::next_check(Clock::time_point start) {
  const auto usual = start + options_.interval / 2;
  if (failures_ == 0) return usual;
  const auto max_pause =
      std::min<Clock::duration>(kMaxPause, kFirstPause * (1 << std::min(failures_, 16)));
  std::uniform_int_distribution<Clock::rep> random(max_pause.count() / 2, max_pause.count());
  return std::max(usual, Clock::now() + Clock::duration(random(random_)));
}

// Pushes what is new, and asks `told` meanwhile, if it is not null. False: it wants an end, and so
// do calls of the remote that take longer than a moment then.
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

// False: `told` wants an end.
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
    // A version was removed meanwhile; a server comes back.
    const bool may_pass = e.code() == Errc::io || e.code() == Errc::not_found ||
                          e.code() == Errc::no_space || e.code() == Errc::corrupted;
    if (!may_pass) throw;
    failure = e.what();
    checked_.reset();  // what is there may be other than it was
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

// Why something is left behind, if it is.
std::string Replicator::push_once() {
  const bool is_behind = !find_new().names.empty();
  if (is_behind) note_behind();
  if (is_behind || is_check_due()) {
    std::string busy;
    const auto session = open_session(busy);
    if (session == nullptr) return busy;
    if (is_check_due()) check_remote(*session);
    push_fresh(*session);
    checked_ = Clock::now();
  }
  const std::lock_guard lock(mutex_);
  behind_since_.reset();
  return refused_.empty() ? "" : refused_.begin()->second;
}

void Replicator::note_behind() {
  const std::lock_guard lock(mutex_);
  if (!behind_since_.has_value()) behind_since_ = Clock::now();
}

bool Replicator::is_check_due() const {
  return !checked_.has_value() || Clock::now() - *checked_ >= kCheckInterval;
}

// What the remote has lost, or has otherwise than this store has left it, is to be pushed with what
// is new.
void Replicator::check_remote(Session& session) {
  const Head head = session.newest_head().head;
  if (session.has_lost()) seen_objects_.forget();
  lost_.clear();
  for (const std::string& name : store::snapshot_names(store_)) {
    if (seen_objects_.is_known() || head.find(name) == nullptr || refused_.contains(name)) continue;
    lost_.insert(name);
  }
  for (const std::string& branch : store_.branch_names()) {
    if (!store::is_aside_name(branch)) lost_.insert(branch);
  }
}

void Replicator::push_fresh(Session& session) {
  const NewVersions fresh = find_new();
  std::set<std::string> names(fresh.names.begin(), fresh.names.end());
  names.merge(std::exchange(lost_, {}));
  if (names.empty()) return;
  push_names(session, {names.begin(), names.end()});
  session.note_replicated(fresh.orders);
}

// Null, and why: another push or pull is at work.
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
    if (!store::is_aside_name(branch) && !is_pushed_branch(file, branch)) {
      out.names.push_back(branch);
    }
  }
  return out;
}

void Replicator::push_names(Session& session, const std::vector<std::string>& names) {
  try {
    const PushReport report =
        push(session, {names, options_.take_over}, nullptr, {&seen_objects_, true});
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

// One of them has another meaning at the remote: that one stays behind.
void Replicator::push_each(Session& session, const std::vector<std::string>& names) {
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
