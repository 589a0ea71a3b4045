// store/branch/branch_writer_impl.hpp: the state that the parts of BranchWriter share; internal.
#pragma once

#include "store/branch/branch_writer.hpp"
#include "store/branch/checkpoint.hpp"
#include "store/catalog/store_core.hpp"
#include "store/journal/journal_writer.hpp"
#include "store/pack/io_cost.hpp"
#include "store/record/pack_writer.hpp"

namespace vellum::store {

struct BranchWriter::Impl {
  StoreCore& store;
  std::string name;
  std::string label;          // "branch 'x' of /path"
  format::Encoding encoding;  // set when the journal has been read
  std::shared_ptr<PageSource> source_at_open;
  std::unique_ptr<PackWriter> packs;
  std::unique_ptr<JournalWriter> journal;

  format::Version head;               // its runs are those of the last checkpoint
  std::vector<PageWrites> epoch;      // the writes of the journal's commits since, oldest first
  std::uint64_t epoch_raw_bytes = 0;  // see max_epoch_raw_bytes()
  bool unsaved_parent = false;        // a published snapshot is not in the journal yet
  std::shared_ptr<PageSource> checkpointed;  // the last checkpoint's version; opened when needed
  KnownChains chains;                        // of `checkpointed`
  bool checkpointing = false;                // `chains` may be ahead of it
  Dedup dedup;                               // active during a large commit
  std::uint64_t counted_bytes = 0;  // of packs->bytes_appended(), up to the last checkpoint
  std::string poison;               // why every further commit is refused

  Impl(StoreCore& s, std::string n)
      : store(s),
        name(std::move(n)),
        label(fmt::format("branch '{}' of {}", name, s.path())),
        dedup(s) {}

  const PageSource& last_checkpointed();
  void check_not_poisoned() const;
  void check_in_place() const;
  void checkpoint(const format::Version& next, std::span<const PageWrites> commit,
                  std::vector<format::MapEntry> written, const CommittedPages* committed = nullptr);
  void write_checkpoint(format::Version& next, std::span<const PageWrites> commit,
                        std::vector<format::MapEntry> written, const CommittedPages* committed);
  void write_hashes();
  void add_run(format::Version& next, std::vector<format::MapEntry> entries,
               EncodingThreads& threads);
  void give_up_checkpoint(const char* reason) noexcept;
  IoCost io() const noexcept;
};

}  // namespace vellum::store
