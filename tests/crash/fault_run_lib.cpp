#include "crash/fault_run_lib.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "crash/script_lib.hpp"
#include "store/check/check.hpp"
#include "vellum/error.hpp"

namespace vellum::crash {

namespace {

[[noreturn]] void complain(const std::string& what) { throw std::logic_error(what); }

void small_commit(Session& s, const std::string& branch, std::uint64_t value) {
  s.pages(branch).store64(value % s.pages(branch).count(), 8 * (value % 512), value | 1);
  s.commit(branch, false);
}

void large_commit(Session& s, const std::string& branch, std::uint64_t seed, std::size_t pages) {
  std::mt19937_64 random(seed);
  for (std::size_t p = 0; p < pages; ++p) s.pages(branch).fill(p, random);
  s.commit(branch, false);
}

void create(Session& s, std::uint64_t seed) {
  s.create_store(options_for(seed));
  s.create_branch("main", 10);
}

void run_commits(Session& s) {
  create(s, 0);
  for (std::uint64_t i = 0; i < 4; ++i) small_commit(s, "main", 11 * i);
  s.pages("main").store64(2, 0, 5);
  s.commit("main", true);
  small_commit(s, "main", 3);
  s.close_all();
  small_commit(s, "main", 77);  // fills the holes that the clean close has punched
  s.pages("main").grow(12);
  small_commit(s, "main", 11);
  s.close_all();
}

void run_packs(Session& s) {
  create(s, 2);  // packs of a few KiB
  large_commit(s, "main", 1, 4);
  small_commit(s, "main", 9);
  large_commit(s, "main", 2, 5);
  s.close_all();
  large_commit(s, "main", 3, 3);
  s.close_all();
}

void run_names(Session& s) {
  create(s, 4);
  small_commit(s, "main", 1);
  s.snapshot("main", "one");
  s.create_branch_at("side", "one");
  small_commit(s, "side", 2);
  s.snapshot("side", "two");
  s.remove_snapshot("one");
  s.remove_branch("side");
  small_commit(s, "main", 3);
  s.close_all();
}

std::size_t files_in(const std::string& directory) {
  std::size_t files = 0;
  std::error_code ignored;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(directory, ignored)) {
    ++files;
  }
  return files;
}

bool must_not_show(Fault fault) {
  return fault == Fault::interrupted || fault == Fault::short_only;
}

// How the program continues after the error.
class Aftermath {
 public:
  Aftermath(Session& session, const Error& error, Fault fault) : s_(session), error_(error) {
    const std::string call = FaultScope::hit_call();
    // With a sticky fault, the first failed call may be an optional one: of a marker or a pin.
    const std::string what = error_.what();
    sync_failed_ =
        call == "fdatasync" || call == "fsync" || what.find(": fdatasync: ") < what.size();
    // A directory that cannot be opened cannot be synced.
    may_be_poisoned_ = sync_failed_ || call == "open" || fault == Fault::short_write;
  }

  void check_error() const {
    switch (error_.code()) {
      case Errc::io:
      case Errc::no_space:
        return;
      default:
        complain(fmt::format("the error is {}: {}", errc_name(error_.code()), error_.what()));
    }
  }

  // The head is the last commit. After a failed sync, the failed commit may be visible, too.
  void check_head() {
    s_.accept_failure();
    if (!s_.failed_commit().empty() && !sync_failed_ && s_.state() != s_.before_failure()) {
      complain(fmt::format("the commit failed, and is the head: {}", error_.what()));
    }
    poisoned_ = sync_failed_ ? s_.failed_commit() : "";
  }

  // The fault persists: every commit fails, and none does harm.
  void commits_fail() {
    for (const auto& [name, version] : usable_branches()) {
      FaultScope::strike_again();
      try {
        small_commit(s_, name, 99);
      } catch (const Error&) {
      }
      FaultScope::repair();
      s_.accept_failure();
    }
  }

  // The same writers continue after the fault has ended.
  void next_commit(bool sticky) {
    for (const auto& [name, version] : usable_branches()) {
      try {
        small_commit(s_, name, 123);
        if (name == poisoned_) complain("a commit after a failed sync");
      } catch (const Error& e) {
        if (!sticky) check_poison(e);
        s_.accept_failure();
      }
    }
  }

 private:
  std::map<std::string, VersionState> usable_branches() const {
    std::map<std::string, VersionState> out;
    for (const auto& [name, version] : s_.state().branches) {
      if (s_.has_writer(name) && version.region_bytes != 0) out[name] = version;
    }
    return out;
  }
  void check_poison(const Error& e) const {
    if (e.code() != Errc::poisoned) complain(fmt::format("the next commit: {}", e.what()));
    if (!may_be_poisoned_) complain("poisoned without a failed sync");
    const std::string what = e.what();
    if (what.find("flush failed") == std::string::npos ||
        what.find("reopen") == std::string::npos) {
      complain("poisoned, without a reason: " + what);
    }
  }

  Session& s_;
  const Error& error_;
  bool sync_failed_ = false;
  bool may_be_poisoned_ = false;
  std::string poisoned_;  // the branch that must refuse commits
};

// A new program opens the store afterwards.
void use_again(Session& s) {
  s.reopen();
  if (!s.state().exists) s.create_store(options_for(0));
  if (s.state().branches.empty()) s.create_branch("main", 4);
  for (const auto& [name, version] : StoreState(s.state()).branches) small_commit(s, name, 321);
  s.close_all();
  s.reopen();
  const auto report = store::verify_store(s.core(), true, nullptr);
  if (!report.damages.empty()) {
    complain("verify: " + report.damages[0].object + ": " + report.damages[0].reason);
  }
}

void run_once(const Workload& workload, Session& session, Fault fault, std::uint64_t nth,
              bool sticky, FaultOutcome& out) {
  const FaultScope scope(fault, nth, sticky);
  try {
    workload.run(session);
    FaultScope::repair();
    out.hit = FaultScope::hit();
  } catch (const Error& e) {
    FaultScope::repair();
    out.hit = FaultScope::hit();
    if (must_not_show(fault)) complain(fmt::format("an error that must not show: {}", e.what()));
    Aftermath after(session, e, fault);
    after.check_error();
    after.check_head();
    if (sticky) after.commits_fail();
    after.next_commit(sticky);
  }
  if (out.hit) use_again(session);
}

}  // namespace

std::size_t open_descriptors() { return files_in("/proc/self/fd"); }

std::vector<Workload> fault_workloads() {
  return {{"commits", run_commits}, {"packs", run_packs}, {"names", run_names}};
}

FaultOutcome run_with_fault(const Workload& workload, const std::string& directory, Fault fault,
                            std::uint64_t nth, bool sticky) {
  FaultOutcome out;
  std::filesystem::remove_all(directory);
  const std::size_t descriptors = open_descriptors();
  try {
    Session session(base::posix_fs(), directory, StoreState());
    run_once(workload, session, fault, nth, sticky, out);
  } catch (const std::exception& e) {
    out.problem =
        fmt::format("{}: {} {}at call {} ({}): {}", workload.name, fault_name(fault),
                    sticky ? "from there on " : "", nth, FaultScope::hit_call(), e.what());
    return out;
  }
  if (open_descriptors() != descriptors) out.problem = "descriptors are left open";
  // With a sticky fault, unlink failed as well.
  if (!sticky && std::string(FaultScope::hit_call()) != "unlink" &&
      files_in(directory + "/tmp") != 0) {
    out.problem = fmt::format("{}: {} at call {} ({}): a file is left in tmp", workload.name,
                              fault_name(fault), nth, FaultScope::hit_call());
  }
  return out;
}

}  // namespace vellum::crash
