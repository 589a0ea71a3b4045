// store/page_map/page_source.hpp: the content of one version, read by pages from packs and journal.
//
// The journal's commits apply to a branch's head only. Immutable after open().
//
// Threads: any number. The functions marked noexcept allocate nothing: the fault handler calls them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/journal.hpp"
#include "format/wire/types.hpp"
#include "format/working_set.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/packs/record/record_cache.hpp"

namespace vellum::store {

class PackStore;

// The longest chain of deltas that is read; longer ones are corrupted. Checkpoints keep chains far
// shorter.
inline constexpr std::size_t kMaxChainDeltas = 64;

class PageSource {
 public:
  // Reads the run roots, but not the map blocks, and opens the packs that they name. `commits` are the
  // journal's commits after `version`, oldest first. `label` names the version in error messages
  // ("snapshot 'a' of /path"). Throws Errc::corrupted and the errors of reading.
  static std::shared_ptr<PageSource> open(PackStore& store, const format::Version& version,
                                          std::vector<format::CommitBody> commits,
                                          std::string label);
  ~PageSource();
  // Holds `version_pin` while the source lives, so that gc keeps the version's records
  // (store/catalog/lock/version_pin.hpp).
  void keep(VersionPin version_pin) noexcept;

  const std::string& label() const noexcept;
  std::uint64_t region_bytes() const noexcept;               // after the commits
  std::optional<std::uint64_t> file_bytes() const noexcept;  // the same

  // Whether neither journal nor page map has an entry: all pages are zero. Reads nothing.
  bool mentions_nothing() const noexcept;
  // How many pages from `first` on, at most `limit`, are zero by journal and page map, without their
  // content.
  std::size_t zeros_from(format::PageNumber first, std::size_t limit) const noexcept;
  // Fills `out` (count * kPageBytes). Pages past region_bytes() read as zero. `alone`: neighbours of
  // these pages are unlikely to be read soon.
  bool try_read(format::PageNumber first, std::size_t count, std::byte* out, ReadFailure& failure,
                bool alone = false) const noexcept;

  // Whether pages may be in remote packs. If so, fetch_early() requests all pieces that these pages
  // need at once. REQUIRES: its result lives while they are read.
  bool may_be_remote() const noexcept;
  std::shared_ptr<const void> fetch_early(std::span<const format::PageRange> ranges) const;

  // True: the pages have this content. False: unknown. Pages with deltas, or that cannot be read, are
  // not compared, so that no page is copied.
  bool surely_equal(format::PageNumber first, std::size_t count,
                    const std::byte* content) const noexcept;

  // As try_read(), but throws an Error that names version, page, file and offset (Errc::corrupted,
  // io or out_of_memory).
  void read(format::PageNumber first, std::size_t count, std::byte* out) const;
  [[noreturn]] void raise(const ReadFailure& failure) const;
  // The same text without allocation, NUL-terminated, for the fault handler before it aborts.
  void describe(const ReadFailure& failure, std::span<char> out) const noexcept;

  // The chain of one page, newest first, down to a base or zero; for diff, verify and checkpoints.
  // Without the journal's commits, which a checkpoint composes itself. Empty for a page that no run
  // has. Throws Errc::corrupted.
  std::vector<format::MapEntry> chain(format::PageNumber page) const;
  // The depth of each page from `first` on (0: its newest entry is a base or zero, or it has none).
  void depths(format::PageNumber first, std::span<std::uint8_t> out) const;
  // The pages that the journal's commits write, ascending, and whether each is all zero after them.
  struct OverlaidPage {
    format::PageNumber page = 0;
    bool zero = false;
  };
  std::vector<OverlaidPage> overlaid_pages() const;
  // All entries of one run; run 0 is the newest. REQUIRES: the version has this run.
  std::vector<format::MapEntry> run_entries(std::size_t run) const;

 private:
  PageSource();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::store
