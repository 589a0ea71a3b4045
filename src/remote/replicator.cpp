#include "remote/replicator.hpp"

#include <algorithm>
#include <thread>

#include "base/fail.hpp"
#include "remote/push.hpp"
#include "remote/session/open_engine.hpp"
#include "store/branch/adopt_version.hpp"
#include "store/catalog/aside_name.hpp"

namespace vellum::remote {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kReplicaName = "replica";
constexpr std::chrono::milliseconds kStep{100};  // between two looks at whether to end

// The name under which the store knows the remote at `url`.
std::string know_remote(store::StoreCore& store, const std::string& url) {
  const auto names = remote_names(store);
  for (const std::string& name : names) {
    if (read_remote_file(store, name).url == url) return name;
  }
  std::string name = kReplicaName;
  for (int n = 2; std::ranges::count(names, name) != 0; ++n) {
    name = kReplicaName + std::to_string(n);
  }
  add_remote(store, name, url, false);
  return name;
}

}  // namespace

Replicator::Replicator(store::StoreCore& store, const std::string& url,
                       const ReplicateOptions& options, std::shared_ptr<ObjectStore> objects)
    : store_(store), options_(options), objects_(std::move(objects)) {
  if (options_.interval <= std::chrono::milliseconds(0)) {
    fail(Errc::invalid_argument, "an interval of a replication is longer than 0 ms");
  }
  remote_ = know_remote(store, url);
  if (objects_ == nullptr) objects_ = open_object_store(store.fs(), url);
}

ReplicateState Replicator::run(const ReplicateFn& told) {
  for (bool goes_on = true;;) {
    const auto start = Clock::now();
    push_new();
    if (!goes_on) return state_;
    goes_on = wait(told, start + options_.interval / 2);
  }
}

// False: `told` wants an end.
bool Replicator::wait(const ReplicateFn& told, Clock::time_point until) {
  for (;;) {
    update_behind();
    if (!told(state_)) return false;
    const auto now = Clock::now();
    if (now >= until) return true;
    std::this_thread::sleep_for(std::min<Clock::duration>(until - now, kStep));
  }
}

bool Replicator::push_new() {
  state_.failure.clear();
  try {
    const NewVersions fresh = find_new();
    if (!fresh.names.empty()) {
      if (!behind_since_.has_value()) behind_since_ = Clock::now();
      const auto session = open_session();
      if (session == nullptr) return false;
      push_names(*session, fresh.names);
      session->note_replicated(fresh.orders);
    }
    behind_since_.reset();
    if (!refused_.empty()) state_.failure = refused_.begin()->second;
  } catch (const Error& e) {
    // A version was removed meanwhile; a server comes back.
    const bool may_pass = e.code() == Errc::io || e.code() == Errc::not_found ||
                          e.code() == Errc::no_space || e.code() == Errc::corrupted;
    if (!may_pass) throw;
    state_.failure = e.what();
  }
  update_behind();
  return state_.failure.empty();
}

// Null: another push or pull is at work.
std::unique_ptr<Session> Replicator::open_session() {
  try {
    return std::make_unique<Session>(store_, remote_, objects_);
  } catch (const Error& e) {
    if (e.code() != Errc::busy) throw;
    state_.failure = e.what();
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
    if (!store::is_aside_name(branch) && !is_known_branch(file, branch)) {
      out.names.push_back(branch);
    }
  }
  return out;
}

void Replicator::push_names(Session& session, const std::vector<std::string>& names) {
  try {
    const PushReport report = push(session, {names, options_.take_over}, nullptr);
    ++state_.pushes;
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
  state_.behind =
      behind_since_.has_value()
          ? std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - *behind_since_)
          : std::chrono::milliseconds(0);
}

}  // namespace vellum::remote
