// store/page_map/page_source.hpp: the content of one version, read page by page from packs (and,
// for a branch's head, from the journal's commits on top).
//
// Immutable after open. try_read() and zeros_from() allocate nothing and throw nothing: the fault
// handler calls them, from any number of threads at once.
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

// The longest chain of deltas through which a page is read; checkpoints keep chains far below it.
inline constexpr std::size_t kMaxChainDeltas = 64;

class PageSource {
 public:
  // Reads the run roots (not the blocks) and opens the packs they name. `commits` are the journal's
  // frames after `version`, oldest first. `label` names the version in error messages ("snapshot
  // 'a' of /path").
  static std::shared_ptr<PageSource> open(PackStore& store, const format::Version& version,
                                          std::vector<format::CommitBody> commits,
                                          std::string label);
  ~PageSource();
  // Holds `version_pin`, which keeps gc from the version (store/catalog/lock/version_pin.hpp), while the
  // source lives.
  void keep(VersionPin version_pin) noexcept;

  const std::string& label() const noexcept;
  std::uint64_t region_bytes() const noexcept;               // after the commits
  std::optional<std::uint64_t> file_bytes() const noexcept;  // the same

  // Whether neither journal nor page map has any page, so all is zero. Reads nothing.
  bool mentions_nothing() const noexcept;
  // How many pages from `first` on, at most `limit`, journal and page map alone show to be zero.
  std::size_t zeros_from(format::PageNumber first, std::size_t limit) const noexcept;
  // Fills `out` (count * kPageBytes). Pages past region_bytes() read as zero. `alone`: the pages
  // around these are unlikely to be read soon.
  bool try_read(format::PageNumber first, std::size_t count, std::byte* out, ReadFailure& failure,
                bool alone = false) const noexcept;

  // Whether pages may lie at a remote. If so, fetch_early() asks at once for all that these pages
  // need. REQUIRES: the result lives while they are read.
  bool may_be_remote() const noexcept;
  std::shared_ptr<const void> fetch_early(std::span<const format::PageRange> ranges) const;

  // Whether the pages have this content, as far as that shows without copying them. False says
  // nothing: a page that has deltas, or cannot be read, is not compared.
  bool surely_equal(format::PageNumber first, std::size_t count,
                    const std::byte* content) const noexcept;

  // The same as try_read(), but throws an Error that names version, page, file and offset (Errc::corrupted or
  // io).
  void read(format::PageNumber first, std::size_t count, std::byte* out) const;
  [[noreturn]] void raise(const ReadFailure& failure) const;
  // The same text without allocation, NUL-terminated, for the last words of the fault handler.
  void describe(const ReadFailure& failure, std::span<char> out) const noexcept;

  // The chain of one page, newest first, down to a base or zero; for diff, verify and checkpoints.
  // It leaves out the journal's part, which a checkpoint composes itself. It is empty for a page
  // that no run mentions. Throws Errc::corrupted.
  std::vector<format::MapEntry> chain(format::PageNumber page) const;
  // The depth of each page from `first` on (0: its newest entry is a base or zero, or it has none).
  void depths(format::PageNumber first, std::span<std::uint8_t> out) const;
  // The pages that the journal's commits write, ascending, and whether each is all zero after them.
  struct OverlaidPage {
    format::PageNumber page = 0;
    bool zero = false;
  };
  std::vector<OverlaidPage> overlaid_pages() const;
  // All entries of one run; run 0 is the newest.
  std::vector<format::MapEntry> run_entries(std::size_t run) const;

 private:
  PageSource();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::store
