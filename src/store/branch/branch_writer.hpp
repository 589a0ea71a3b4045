// store/branch/branch_writer.hpp: the single writer of a branch.
//
// The writer turns page writes into commits, checkpoints and snapshots. A small commit becomes a
// journal frame: one write, one fdatasync. A checkpoint moves the journal's net effect (each page's
// deltas composed into one) and a large commit's pages into packs. It adds a sorted run to the page
// map, merges runs where due, and starts a new journal epoch: two fdatasyncs. docs/format.md has
// the write order and the crash table.
//
// Errors: when a write fails (Errc::no_space, io), the commit has not happened, the head is
// unchanged, and the next commit may succeed. When a sync fails, the branch is poisoned: it refuses
// every further commit with Errc::poisoned and the reason, since the kernel may have dropped the
// dirty pages and a retry would lie (Rebello et al., "Can Applications Recover from fsync
// Failures?", ATC 2020). Reopening recovers.
//
// Threads: one call at a time, except Commit::add.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/journal.hpp"
#include "format/records/delta.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/types.hpp"
#include "store/branch/checkpoint/committed_pages.hpp"
#include "store/branch/checkpoint/dedup.hpp"
#include "store/catalog/lock/name_lock.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/packs/io_cost.hpp"
#include "store/page_map/page_source.hpp"
#include "store/page_map/page_writes.hpp"

namespace vellum::store {

class StoreDirectory;

// The cost of a commit: what it wrote to the journal and to packs.
struct CommitCost : IoCost {
  std::uint64_t sequence = 0;  // of the version that it completes; 0: no commit
  bool checkpointed = false;
};

class BranchWriter {
 public:
  // Takes the branch's lock (Errc::busy names the branch) and recovers. Errc::not_found, corrupted,
  // read_only. Stores pages in `encoding`, or else in the branch's, or else in the store's.
  // Errc::invalid_argument: its blocks would be larger than the store's readers accept.
  static std::unique_ptr<BranchWriter> open(
      StoreDirectory& store, const std::string& branch,
      const std::optional<format::Encoding>& encoding = std::nullopt);
  // Checkpoints the journal's commits and releases its space, unless poisoned. Swallows errors: the
  // journal still has everything.
  ~BranchWriter();

  // The head as it was when the writer opened.
  std::shared_ptr<PageSource> source_at_open() const;
  // The head now: sequence, region_bytes, base_address, parent, message of the last commit.
  const format::Version& head() const noexcept;
  // How pages are stored.
  const format::Encoding& encoding() const noexcept;
  // What the journal holds that no checkpoint has published. Between commits.
  std::uint64_t backlog_bytes() const noexcept;

  // An unfinished commit. Several threads may add pieces. The blocks of a large commit go to the
  // pack at once, so memory stays bounded. Without finish(), the destructor discards the commit.
  class Commit {
   public:
    ~Commit();
    void add(PageWrites&& piece);
    // From now on, add() writes deltas to the pack when there are many, so memory stays bounded also
    // where pages change a little. REQUIRES: the journal has no commits (checkpoint_journal()).
    void write_deltas_early() noexcept;
    // Finds pages that the store already holds; nullptr: this commit does not look for them.
    const Dedup* dedup() const noexcept;
    // Durable on return. With `checkpoint`, the commit goes through a checkpoint whatever its size.
    // `committed` has pages that the caller holds in memory, which saves reading them back.
    CommitCost finish(const format::CommitInfo& info, bool checkpoint,
                      const CommittedPages* committed = nullptr);

    // The same, with a checkpoint, and as the snapshot of a claimed name: after a crash both have
    // happened, or neither has.
    CommitCost finish_as(const NameLock& snapshot, const format::CommitInfo& info,
                         const CommittedPages* committed = nullptr);

   private:
    friend class BranchWriter;
    CommitCost finish(const format::CommitInfo& info, bool checkpoint,
                      const CommittedPages* committed, const NameLock* snapshot);
    explicit Commit(BranchWriter& writer);
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };
  // `pages`: about how many pages the commit will write. A large commit looks for its pages in the
  // store if the encoding says so.
  std::unique_ptr<Commit> begin(std::size_t pages = 0);
  // Moves the journal's commits, if there are any, into packs. REQUIRES: no commit is unfinished.
  void checkpoint_journal();

  // Whether the branch that was opened is still in its place. If not, the store was moved, and
  // another may be there: commits then throw Errc::io and change neither store.
  bool in_place() const noexcept;
  void require_in_place() const;

  // Publishes the head as a snapshot. REQUIRES: the last finish() had checkpoint = true.
  // Errc::already_exists, except with a claim_name().
  void publish_snapshot(const std::string& name, const std::string& message);
  void publish_snapshot(const NameLock& claim, const std::string& message);

  // The head as the journal has it now; gc keeps away from it while the source lives. It is found
  // by the open journal, not by the branch's name, which may mean another branch by now.
  std::shared_ptr<PageSource> open_head() const;

 private:
  BranchWriter();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::store
