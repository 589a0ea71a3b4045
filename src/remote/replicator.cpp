#include "remote/replicator.hpp"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "base/fail.hpp"
#include "base/threads/signals_blocked.hpp"
#include "remote/push.hpp"
#include "remote/session/open_engine.hpp"
#include "store/branch/adopt_version.hpp"
#include "store/catalog/names.hpp"

namespace vellum::remote {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kEndWait{1000};                           // for the last push
constexpr std::chrono::milliseconds kFirstPause{500}, kLongestPause{30'000};  // after failures
constexpr std::chrono::milliseconds kStep{100};    // between two looks at whether to end
constexpr std::chrono::seconds kBetweenLooks{60};  // at a remote to which nothing was pushed

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

ReplicateState Replicator::run(const ReplicateFn& told) {
  for (bool goes_on = true; goes_on;) {
    const auto start = Clock::now();
    goes_on = push_beside(told) && wait(told, next_look(start));
  }
  seen_.reset();  // the last word is about the remote as it is
  push_beside(nullptr);
  return state();
}

// Twice in each interval; after failures later and later, and at random, so that many do not come
// back at once.
Clock::time_point Replicator::next_look(Clock::time_point start) {
  const auto usual = start + options_.interval / 2;
  if (failures_ == 0) return usual;
  const auto longest =
      std::min<Clock::duration>(kLongestPause, kFirstPause * (1 << std::min(failures_, 16)));
  std::uniform_int_distribution<Clock::rep> random(longest.count() / 2, longest.count());
  return std::max(usual, Clock::now() + Clock::duration(random(random_)));
}

// Pushes what is new, and asks `told` meanwhile, if it is not null. False: it wants an end, and so
// do calls of the remote that take longer than a moment then.
bool Replicator::push_beside(const ReplicateFn& told) {
  auto pushing = [this] {
    const base::SignalsBlocked blocked;  // they are the program's, as its threads want them
    return std::async(std::launch::async, [this] { push_new(); });
  }();
  std::optional<Clock::time_point> end;
  if (told == nullptr) end = Clock::now() + kEndWait;
  while (pushing.wait_for(kStep) != std::future_status::ready) {
    update_behind();
    if (!end.has_value() && !told(state())) end = Clock::now() + kEndWait;
    if (end.has_value() && Clock::now() >= *end) objects_->stop();
  }
  pushing.get();
  return told != nullptr && !end.has_value();
}

// False: `told` wants an end.
bool Replicator::wait(const ReplicateFn& told, Clock::time_point until) {
  for (;;) {
    update_behind();
    if (!told(state())) return false;
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
    seen_.reset();  // what is there may be other than it was
    there_.forget();
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
  if (is_behind || is_look_due()) {
    std::string busy;
    const auto session = open_session(busy);
    if (session == nullptr) return busy;
    if (is_look_due()) look(*session);
    push_fresh(*session);
    seen_ = Clock::now();
  }
  const std::lock_guard lock(mutex_);
  behind_since_.reset();
  return refused_.empty() ? "" : refused_.begin()->second;
}

void Replicator::note_behind() {
  const std::lock_guard lock(mutex_);
  if (!behind_since_.has_value()) behind_since_ = Clock::now();
}

bool Replicator::is_look_due() const {
  return !seen_.has_value() || Clock::now() - *seen_ >= kBetweenLooks;
}

// What the remote has lost, or has otherwise than this store has left it, is to be pushed with what
// is new.
void Replicator::look(Session& session) {
  const Head head = session.newest_head().head;
  if (session.has_lost()) there_.forget();
  lost_.clear();
  for (const std::string& name : store::snapshot_names(store_)) {
    if (there_.is_known() || head.find(name) == nullptr || refused_.contains(name)) continue;
    lost_.insert(name);
  }
  for (const std::string& branch : store_.branch_names()) {
    if (!store::is_staging_name(branch)) lost_.insert(branch);
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

bool Replicator::is_known_branch(const RemoteFile& file, const std::string& branch) const {
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
    if (!store::is_staging_name(branch) && !is_known_branch(file, branch)) {
      out.names.push_back(branch);
    }
  }
  return out;
}

void Replicator::push_names(Session& session, const std::vector<std::string>& names) {
  try {
    const PushReport report = push(session, {names, options_.take_over}, nullptr, {&there_, true});
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
