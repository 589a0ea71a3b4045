// store/branch/branch_writer.hpp: the single writer of a branch.
//
// The writer turns page writes into commits, checkpoints and snapshots. A small commit becomes a
// journal frame: one write, one fdatasync. A checkpoint writes the journal's net effect (each page's
// deltas composed into one) and a large commit's pages to packs. It adds a sorted run to the page
// map, merges runs of similar size, and starts a new journal epoch: two fdatasyncs. docs/format.md
// has the write order and the crash table.
//
// Errors: when a write fails (Errc::no_space, io), the commit has not happened, the head is
// unchanged, and the next commit may succeed. When a sync fails, the branch is poisoned: it refuses
// every further commit with Errc::poisoned and the reason. The kernel may have dropped the dirty
// pages, so a retry could report a success that did not happen (Rebello et al., "Can Applications
// Recover from fsync Failures?", ATC 2020). Reopening recovers.
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
#include "store/branch/checkpoint/dedup.hpp"
#include "store/catalog/lock/name_lock.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/packs/io_cost.hpp"
#include "store/page_map/page_source.hpp"
#include "store/page_map/page_writes.hpp"

namespace vellum::store {

class CommittedPages;  // store/branch/checkpoint/checkpoint.hpp
class StoreDirectory;

// The cost of a commit: what it wrote to the journal and to packs.
struct CommitCost : IoCost {
  std::uint64_t sequence = 0;  // of the version that it completes; 0: no commit
  bool checkpointed = false;
};

class BranchWriter {
 public:
  // Takes the branch's lock (Errc::busy names the branch) and recovers. Errc::not_found, corrupted,
  // read_only. Stores pages in `encoding`; without it, in the branch's encoding; without that, in the
  // store's. Errc::invalid_argument: its blocks would be larger than the store's readers accept.
  static std::unique_ptr<BranchWriter> open(
      StoreDirectory& store, const std::string& branch,
      const std::optional<format::Encoding>& encoding = std::nullopt);
  // Checkpoints the journal's commits and releases its space, unless poisoned. Ignores errors: the
  // journal still has all commits.
  ~BranchWriter();

  // The head at the opening.
  std::shared_ptr<PageSource> source_at_open() const;
  // The current head. Its runs are those of the last checkpoint.
  const format::Version& head() const noexcept;
  // How pages are stored.
  const format::Encoding& encoding() const noexcept;
  // Size of the journal's frames that no checkpoint has published. REQUIRES: no commit is unfinished.
  std::uint64_t backlog_bytes() const noexcept;

  // An unfinished commit. Several threads may add pieces. The blocks of a large commit are appended to
  // the pack by add(), so memory stays bounded. Without finish(), the destructor discards the commit.
  class Commit {
   public:
    ~Commit();
    void add(PageWrites&& piece);
    // Later calls of add() write deltas to the pack when there are many, so memory stays bounded even
    // if many pages change a little. REQUIRES: the journal has no commits (checkpoint_journal()).
    void write_deltas_early() noexcept;
    // The index of pages that the store already holds; nullptr: this commit does not search it.
    const Dedup* dedup() const noexcept;
    // Durable on return. With `checkpoint`, the commit becomes a checkpoint whatever its size.
    // `committed` has pages that the caller holds in memory, so that the store need not read them.
    CommitCost finish(const format::CommitInfo& info, bool checkpoint,
                      const CommittedPages* committed = nullptr);

    // The same with a checkpoint, and as the snapshot of a claimed name. After a crash both exist, or
    // neither does.
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
  // `pages`: the approximate number of pages that the commit will write. A large commit looks its
  // pages up in the store if the encoding has `dedup`.
  std::unique_ptr<Commit> begin(std::size_t pages = 0);
  // Checkpoints the journal's commits, if it has any. REQUIRES: no commit is unfinished.
  void checkpoint_journal();

  // Whether the branch's path still names the journal that was opened. If not, the store was moved,
  // and another may have replaced it: commits then throw Errc::io and change neither store.
  bool in_place() const noexcept;
  void require_in_place() const;

  // Publishes the head as a snapshot. REQUIRES: the last finish() had checkpoint = true.
  // Errc::already_exists, except with a claim_name().
  void publish_snapshot(const std::string& name, const std::string& message);
  void publish_snapshot(const NameLock& claim, const std::string& message);

  // Signs the ref of a snapshot with this process's key (vellum/signature.hpp), if it has one. Appends
  // the tree's changed pages to the pack, syncs them, and adds them to the ref's version: publish that
  // ref, or call nothing more. REQUIRES: the ref has a name and all signed facts, and its version is the
  // writer's head, except for facts; the last finish() had checkpoint = true. Errc::untrusted: the
  // branch that the ref names wants another key's signature.
  void sign(format::SnapshotRef& ref);

  // The head as the journal has it now. gc does not free its records while the source lives. Read from
  // the open journal rather than by the branch's name, which may mean another branch by now.
  std::shared_ptr<PageSource> open_head() const;

 private:
  BranchWriter();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::store
