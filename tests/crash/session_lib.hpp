// A program that uses a store and a model of its content.
//
// The states of the store are numbered in the order of the session's steps. During a step that
// changes the store, the states from the last to the new one are allowed; after it has returned,
// only the new one.
#pragma once

#include <functional>

#include "crash/pages_lib.hpp"
#include "crash/state_lib.hpp"
#include "region/background_gc.hpp"
#include "store/branch/branch_writer.hpp"
#include "support/disk/sim_fs_lib.hpp"

namespace vellum::crash {

// A store with these options; an encrypted one has its first key slot for key_source().
std::shared_ptr<store::StoreDirectory> create_store_on(base::Fs& fs, const std::string& path,
                                                       const format::Superblock& options);

using sim::Disk;
using sim::SimFs;

inline constexpr const char* kStorePath = "/s";  // on a simulated disk

class Session {
 public:
  using Note =
      std::function<void(std::size_t low, std::size_t high)>;  // the states allowed from now on
  // Opens the store when the state has one.
  Session(base::Fs& fs, std::string path, StoreState state, Note note = nullptr);

  void create_store(const format::Superblock& options);
  void create_branch(const std::string& name, std::size_t pages);
  void create_branch_at(const std::string& name, const std::string& version);
  // Closes the branch's writer first. Creates the branch when it does not exist.
  void import_branch(const std::string& name, const std::vector<std::byte>& content);
  void remove_branch(const std::string& name);  // its writer is closed first
  // After reopen(): the visible state of the branch may not be durable.
  void remove_branch_as_found(const std::string& name);
  void remove_snapshot(const std::string& name);
  void remove_snapshot_unsynced(const std::string& name);  // as if killed in between
  void open_writer(const std::string& branch);
  void close_writer(const std::string& branch);  // cleanly: the journal's commits are checkpointed
  void close_all();
  Pages& pages(const std::string& branch);  // to be changed, then committed
  void commit(const std::string& branch, bool checkpoint);
  void snapshot(const std::string& branch, const std::string& name);
  // Changes no state. By this process, or as by one that has just opened the store.
  void collect_garbage(bool by_another, int recompress_level = 0);
  // From here on writers collect garbage in their commits, as often as possible.
  void keep_space() { keeps_space_ = true; }
  // These change no state either. An archive and a cache for the store; then all packs that may
  // move move to the archive or back to the store, and the cache gets copies.
  void add_tiers();
  void move_packs(bool to_archive);
  // After a step that threw: continues from the state of the files. Throws std::logic_error for a
  // state that the step must not leave. The writers stay; the next commit includes a failed one.
  void accept_failure();
  // The same after the end of a program: the handles are discarded.
  void reopen();

  bool has_writer(const std::string& branch) const { return writers_.count(branch) != 0; }
  const StoreState& state() const { return states_.back(); }
  const std::vector<StoreState>& states() const { return states_; }
  // The state before the last failed step; and the branch whose commit failed in that step, or an
  // empty name.
  const StoreState& before_failure() const { return states_[low_]; }
  const std::string& failed_commit() const { return failed_commit_; }
  store::StoreDirectory& core() { return *core_; }
  // Over all commits: pages that were not stored because the store already had them.
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

// A session on a simulated disk, with a log of its operations.
struct SimSession {
  SimSession(Disk disk, StoreState state);
  ~SimSession() { fs.stop_log(); }  // the log excludes the writers' last checkpoints

  SimFs fs;
  Session session;
};

}  // namespace vellum::crash
