// A program that uses a store, and knows what it must find there.
//
// The states of the store are numbered in the order in which the session makes them. During a step
// that changes the store, states from the last to the new one are allowed; after it returned, only
// the new one.
#pragma once

#include <functional>

#include "crash/pages_lib.hpp"
#include "crash/state_lib.hpp"
#include "region/background_gc.hpp"
#include "store/branch/branch_writer.hpp"
#include "support/disk/sim_fs_lib.hpp"

namespace vellum::crash {

using sim::Disk;
using sim::SimFs;

inline constexpr const char* kStorePath = "/s";  // on a simulated disk

class Session {
 public:
  using Note =
      std::function<void(std::size_t low, std::size_t high)>;  // what is allowed from now on
  // Opens the store when the state has one.
  Session(base::Fs& fs, std::string path, StoreState state, Note note = nullptr);

  void create_store(const format::Superblock& options);
  void create_branch(const std::string& name, std::size_t pages);
  void create_branch_at(const std::string& name, const std::string& version);
  // The branch's writer is closed first. The branch is made when it does not exist.
  void import_branch(const std::string& name, const std::vector<std::byte>& content);
  void remove_branch(const std::string& name);  // its writer is closed first
  // After reopen(): what is seen of the branch may not be durable.
  void remove_branch_as_found(const std::string& name);
  void remove_snapshot(const std::string& name);
  void remove_snapshot_unsynced(const std::string& name);  // as if killed in the middle
  void open_writer(const std::string& branch);
  void close_writer(const std::string& branch);  // cleanly: what the journal holds is checkpointed
  void close_all();
  Pages& pages(const std::string& branch);  // to be changed, then committed
  void commit(const std::string& branch, bool checkpoint);
  void snapshot(const std::string& branch, const std::string& name);
  // Changes no state. Done by this process, or as by one that has just opened the store.
  void collect_garbage(bool by_another, int recompress_level = 0);
  // From here on writers give back space by themselves, in their commits, as often as they can.
  void keep_space() { keeps_space_ = true; }
  // Neither do these. An archive and a cache beside the store; then all packs that may move go to
  // the archive or home, and the cache gets copies.
  void add_tiers();
  void move_packs(bool to_archive);
  // After a step that threw: goes on from what the files show. A state that the step must not leave
  // is a logic_error. The writers stay; a commit that failed will be part of the next.
  void accept_failure();
  // The same after a program that ended: handles are forgotten.
  void reopen();

  bool has_writer(const std::string& branch) const { return writers_.count(branch) != 0; }
  const StoreState& state() const { return states_.back(); }
  const std::vector<StoreState>& states() const { return states_; }
  // The state before the step that failed last, and the branch whose commit failed in it, if that
  // was it.
  const StoreState& before_failure() const { return states_[low_]; }
  const std::string& failed_commit() const { return failed_commit_; }
  store::StoreDirectory& core() { return *core_; }
  // Over all commits: pages that were not stored, since the store had them.
  std::uint64_t pages_found() const { return pages_found_; }

 private:
  struct Writer {
    std::unique_ptr<store::BranchWriter> writer;
    std::unique_ptr<region::BackgroundGc> space;  // may be null
    Pages pages;
  };
  void step(std::vector<StoreState> next, const std::function<void()>& body);
  void allow(std::size_t low);
  StoreState with_commit(const std::string& branch) const;
  void finish_commit(const std::string& branch, bool checkpoint);

  base::Fs& fs_;
  std::string path_;
  Note note_;
  std::vector<StoreState> states_;
  std::size_t low_ = 0;
  bool keeps_space_ = false;
  std::string failed_commit_;
  std::uint64_t pages_found_ = 0;
  std::shared_ptr<store::StoreDirectory> core_;
  std::map<std::string, Writer> writers_;
};

// A session on a simulated disk, with a log of what it did.
struct SimSession {
  SimSession(Disk disk, StoreState state);
  ~SimSession() { fs.stop_log(); }  // the writers' last checkpoints are not part of the log

  SimFs fs;
  Session session;
};

}  // namespace vellum::crash
