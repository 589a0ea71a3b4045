// store/branch/branch_writer_impl.hpp: the state that the parts of BranchWriter share; internal.
#pragma once

#include <list>

#include "base/threads/background.hpp"
#include "store/branch/background_checkpoint.hpp"
#include "store/branch/branch_writer.hpp"
#include "store/branch/checkpoint/checkpoint.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/journal/journal_writer.hpp"
#include "store/packs/io_cost.hpp"
#include "store/packs/record/pack_writer.hpp"
#include "store/page_map/overlay.hpp"
#include "store/signature/signed_versions.hpp"

namespace vellum::store {

// The signature of a snapshot in the making.
struct Signing {
  const base::Secret* key = nullptr;
  std::optional<format::SnapshotRef> parent;  // the signed version before it
  format::VersionSignature signature;         // but for that of the statement
};

// The snapshot that a checkpoint is to be.
struct NewSnapshot {
  const NameLock& claim;
  const base::Secret& key;  // empty: it is not signed
};

// Signs the ref. REQUIRES: it has all signed facts, and `signing` the root.
void sign_statement(const PackStore& store, const Signing& signing, format::SnapshotRef& ref);

struct BranchWriter::Impl {
  StoreDirectory& store;
  std::string name;
  std::string label;          // "branch 'x' of /path"
  format::Encoding encoding;  // set when the journal has been read
  std::shared_ptr<PageSource> source_at_open;
  std::unique_ptr<PackWriter> packs;
  std::unique_ptr<JournalWriter> journal;

  format::Version head;               // its runs are those of the last checkpoint
  std::list<PageWrites> epoch;        // the writes of the journal's later commits, oldest first
  std::uint64_t epoch_raw_bytes = 0;  // see max_epoch_raw_bytes()
  std::shared_ptr<PageSource> checkpointed;  // the last checkpoint's version; opened when needed
  KnownChains chains;                        // of `checkpointed`
  bool checkpointing = false;                // `chains` may be ahead of it
  Dedup dedup;                               // active during a large commit
  std::optional<format::SnapshotRef> signed_last;  // by this writer, and published
  KeptTree kept_tree;                              // the pages of a tree, as they are stored
  bool keeps_last = false;                         // that of `signed_last`
  std::uint64_t counted_bytes = 0;  // of packs->bytes_appended(), up to the last checkpoint
  std::string poison;               // why every further commit is refused

  std::unique_ptr<BackgroundCheckpoint> background;  // null: none to publish
  bool background_failed = false;                    // in this epoch
  std::chrono::nanoseconds background_took{};        // the last one; zero: none yet
  IoCost pack_io;                                    // of `packs`, when `background` began
  IoCost background_io;                              // the part of it that no commit waited for

  Impl(StoreDirectory& s, std::string n)
      : store(s),
        name(std::move(n)),
        label(fmt::format("branch '{}' of {}", name, s.path())),
        dedup(s) {}

  const PageSource& last_checkpointed(const format::Version& version);
  // See max_epoch_raw_bytes().
  std::uint64_t max_raw_bytes() const noexcept {
    return max_epoch_raw_bytes(store.superblock().journal_half_bytes);
  }
  void check_not_poisoned() const;
  void check_in_place() const;
  void checkpoint(const format::Version& next, std::span<const PageWrites> commit,
                  std::vector<format::MapEntry> written, const CommittedPages* committed = nullptr,
                  const NewSnapshot* snapshot = nullptr);
  // Those of the journal's commits up to this sequence that a push has staged.
  std::optional<StagedCommits> staged_commits(std::uint64_t sequence) const;
  // Moves the last checkpoint of the next write_changes() to the staged commits.
  void continue_from(const StagedCommits& staged, format::Version& next);
  void accept(format::Version next);
  void write_note(const NameLock& claim) const;
  class BackgroundNote;
  void start_epoch_at_snapshot(const NameLock& claim, format::Version& version,
                               const Signing* signing);
  // In signing.cpp.
  std::optional<Signing> begin_signing(const base::Secret& key, const std::string& snapshot,
                                       const format::Version& version) const;
  // Appends the tree's changed pages to the pack, and their entries. `entries` are those of the version
  // in no run yet; they may become a run of the version. `committed` has pages of the version.
  void write_tree(format::Version& version, std::vector<format::MapEntry>& entries,
                  const CommittedPages* committed, Signing& signing, EncodingThreads& threads);
  // The same for a version that is in packs, and syncs the pack.
  void write_tree_of_head(format::Version& version, Signing& signing);
  format::TreeHash write_tree_pages(const format::Version& version,
                                    std::span<const TreeLeaf> leaves, const Signing& signing,
                                    std::vector<format::MapEntry>& entries,
                                    EncodingThreads& threads);
  std::optional<OpenSigned> take_tree_before(const format::Version& version,
                                             const Signing& signing);
  bool is_signed_last(const format::SnapshotRef& ref) const;
  void withdraw_snapshot(const NameLock& claim, const char* reason) noexcept;
  // Writes the pieces, oldest first, to the packs; see checkpoint_pieces(). REQUIRES: `last` has the
  // runs of the last checkpoint.
  std::vector<format::MapEntry> write_pieces(const format::Version& last,
                                             std::span<const PageWrites* const> pieces,
                                             std::vector<format::MapEntry> written,
                                             const CommittedPages* committed, Dedup& known,
                                             EncodingThreads& threads);
  // A checkpoint: its records, whose entries it returns; then their run, and a sync of the packs.
  std::vector<format::MapEntry> write_changes(format::Version& next,
                                              const std::vector<const PageWrites*>& pieces,
                                              std::vector<format::MapEntry> written,
                                              const CommittedPages* committed, Dedup& known,
                                              EncodingThreads& threads);
  void write_map(format::Version& next, std::vector<format::MapEntry> entries,
                 EncodingThreads& threads);
  void write_hashes(const Dedup& known);
  void write_version_copy(format::Version& next, std::uint64_t bytes_added_before);
  void add_run(format::Version& next, std::vector<format::MapEntry> entries,
               EncodingThreads& threads);
  void give_up_checkpoint(const char* reason) noexcept;
  IoCost io() const noexcept;

  // In background.cpp.
  bool checkpoint_due() const noexcept;
  void begin_background() noexcept;
  void keep_pace();
  void write_background(const std::vector<const PageWrites*>& pieces) noexcept;
  bool background_written(bool wait);
  bool can_carry(std::size_t payload_bytes) const;
  void publish_background(const format::FrameBuffer* commit);
  bool keep_records();
  void settle_background();
  void drop_background() noexcept;
  void end_background() noexcept;

  base::Background thread;  // the last member: its task uses the others
};

template <class Pieces>
void append_pointers(const Pieces& pieces, std::vector<const PageWrites*>& out) {
  out.reserve(out.size() + pieces.size());
  for (const PageWrites& piece : pieces) out.push_back(&piece);
}

}  // namespace vellum::store
