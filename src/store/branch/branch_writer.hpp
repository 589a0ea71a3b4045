// store/branch/branch_writer.hpp: the one writer of a branch: turns page writes into commits, folds
// and snapshots.
//
// Small commits become a journal frame: one write, one fdatasync. A fold moves the journal's net
// effect (each page's deltas composed into one) and a large commit's pages into packs, adds a
// sorted run to the page map, merges runs where due, and starts a new journal epoch: two
// fdatasyncs. docs/format.md has the write order and the crash table.
//
// Errors: when a write fails (Errc::no_space, io) the commit has not happened, the head is what it
// was, and the next commit may succeed. When a sync fails, the branch is poisoned: it refuses every
// further commit with Errc::poisoned and the reason, since the kernel may have dropped the dirty
// pages and a retry would lie (Rebello et al., "Can Applications Recover from fsync Failures?", ATC
// 2020). Reopening recovers.
//
// Threads: one call at a time, except Commit::add.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/delta.hpp"
#include "format/journal.hpp"
#include "format/superblock.hpp"
#include "format/types.hpp"
#include "store/branch/dedup.hpp"
#include "store/catalog/store_core.hpp"
#include "store/lock/name_lock.hpp"
#include "store/page_map/page_source.hpp"
#include "store/page_map/page_writes.hpp"

namespace vellum::store {

class StoreCore;

struct CommitMeta {
  std::int64_t time_ns = 0;
  std::uint64_t region_bytes = 0;
  std::uint64_t base_address = 0;
  std::string message;
  std::optional<std::uint64_t> file_bytes = {};  // as in format::Version
};

struct CommitCost {
  std::uint64_t sequence = 0;
  std::uint64_t bytes_written = 0;  // journal and packs
  std::uint32_t flushes = 0;
  bool folded = false;
  std::uint64_t write_ns = 0, flush_ns = 0;
};

class BranchWriter {
 public:
  // Takes the branch's lock (Errc::busy names the branch) and recovers. Errc::not_found, damaged,
  // read_only.
  // Stores pages as `encoding` says, or else the branch's own, or else the store's.
  // Errc::invalid_argument: its blocks would be larger than the store's readers take.
  static std::unique_ptr<BranchWriter> open(
      StoreCore& store, const std::string& branch,
      const std::optional<format::Encoding>& encoding = std::nullopt);
  // Folds what the journal holds and gives its space back, unless poisoned; errors are swallowed
  // (the journal has all).
  ~BranchWriter();

  // The head as it was when the writer opened.
  std::shared_ptr<PageSource> source_at_open() const;
  // The head now: sequence, region_bytes, base_address, parent, message of the last commit.
  const format::Version& head() const noexcept;
  // How pages are to be stored.
  const format::Encoding& encoding() const noexcept;

  // A commit in the making. Pieces may be added by several threads; large ones go out to the pack
  // at once, so memory stays bounded. Destroyed without finish(): nothing has happened.
  class Commit {
   public:
    ~Commit();
    void add(PageWrites&& piece);
    // For finding pages that the store holds already; nullptr: not in this commit.
    const Dedup* dedup() const noexcept;
    // Durable when it returns. With `fold`, goes through a fold whatever the size. `committed`
    // saves reading pages back that the caller has in memory.
    CommitCost finish(const CommitMeta& meta, bool fold, const CommittedFn& committed = nullptr);

   private:
    friend class BranchWriter;
    explicit Commit(BranchWriter& writer);
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };
  // `pages`: about how many will be written. Many are looked up in the store, if the encoding says
  // so.
  std::unique_ptr<Commit> begin(std::size_t pages = 0);

  // Whether the branch is still the one that was opened, at its place. If not, the store was moved,
  // and another may be there: commits throw Errc::io then, and change nothing in either.
  bool in_place() const noexcept;
  void require_in_place() const;

  // Publishes the head as a snapshot. REQUIRES: the last finish() had fold = true.
  // Errc::already_exists; not with a claim_name().
  void publish_snapshot(const std::string& name, const std::string& message);
  void publish_snapshot(const NameLock& claim, const std::string& message);

  // The head as the journal has it now. To be read at once: nothing else keeps gc from it for long.
  // Found by the open journal and not by the branch's name, which may mean something else by now.
  std::shared_ptr<PageSource> open_head() const;

 private:
  BranchWriter();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::store
