// memory/file_behind.hpp: the plain file that holds a region's last commit.
//
// A region has one under engine mapped (RegionMemory::file_behind()): the branch's image. The file
// follows a commit once the commit is durable in the store. Until then only the store has it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/wire/types.hpp"

namespace vellum::region {

// One call at a time, except backed_bytes().
class FileBehind {
 public:
  // How much of the region is in the file now; the rest must not be accessed. Any thread.
  virtual std::uint64_t backed_bytes() const noexcept = 0;
  // Sets the length that the next finish_commit() gives the file; none: as long as the region.
  virtual void set_length(std::optional<std::uint64_t> bytes) noexcept = 0;
  // Extends the file at once if it is shorter. Call it before pages up to there are accessed.
  virtual void extend(std::uint64_t bytes) = 0;
  // Undoes uncommitted growth of the file, except the first `keep_bytes`.
  virtual void drop_growth(std::uint64_t keep_bytes) = 0;
  // Drops the region's private copies of pages that equal the file; the file's pages show again.
  // REQUIRES: no thread stores to them meanwhile.
  virtual void drop_copies(const std::vector<format::PageNumber>& pages) = 0;

  // Writes the region's content between the end of `head` and `end_bytes` to the file: a kill does
  // not lose it. The next commit takes it. False: nothing has changed, because the content is too
  // long, or begins before the last end of such a call since the last commit, or the file does not
  // equal `head`. `from_bytes`: stored to since that call. Throws like ImageFile::write_tail().
  // REQUIRES: no thread stores to it meanwhile, and `end_bytes` is the file's size.
  virtual bool write_tail(const format::Version& head, std::uint64_t from_bytes,
                          std::uint64_t end_bytes) = 0;

  // Whether another process waits for the branch: ImageFile::is_asked_for().
  virtual bool is_asked_for() const = 0;

  // A commit of the pages from RegionMemory::collect_dirty() calls the first of these, and then one
  // of the two others.
  // Precedes encoding: corrects the base copies of the pages. An exception fails the commit.
  virtual void prepare_commit(std::span<const format::PageNumber> dirty) = 0;
  // The commit is durable, or no page has changed: the file follows.
  virtual void finish_commit(std::span<const format::PageNumber> dirty) noexcept = 0;
  // The commit has failed, and the encoder has undone its work.
  virtual void abandon_commit(std::span<const format::PageNumber> dirty) noexcept = 0;

  // No commit follows this version.
  virtual void note_closed(const format::Version& head) noexcept = 0;
  // The mapping outlives the region's memory; the caller unmaps it.
  virtual void leave_mapped() noexcept = 0;

 protected:
  ~FileBehind() = default;
};

}  // namespace vellum::region
