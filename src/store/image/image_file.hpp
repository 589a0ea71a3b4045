// store/image/image_file.hpp: a branch's image: a plain file with the head's content, for engine
// `mapped`.
//
// The store stays the truth: a commit is durable in journal and packs before a byte of it goes to
// the image, and after a crash the image is made what the head is. Beside the journal lie what the
// image was when it was last known whole (image.state), and which slots may differ since
// (image.touched): store/image/touched_slots.hpp.
//
// A file that another program has written since it was closed is *adopted*: where it differs from
// the head, its content is what the region holds and has not committed yet.
//
// Threads: one call at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "format/image_state.hpp"
#include "store/image/touched_slots.hpp"
#include "store/pack/pack_store.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

// In a branch's directory.

class ImageFile {
 public:
  // REQUIRES: the branch's lock is held while the image is open; `pages` is `head`'s content.
  // `path` empty: where the image was the last time, or else `image` in the branch's directory.
  // Makes the image when there is none; repairs it after a crash. Errors name the file: busy
  // (someone else has it), damaged (no regular file), already_exists (it is not known as the
  // branch's, and differs from it, or both have changed), invalid_argument (another program has
  // made it shorter, and the branch's versions do not know the file's size), and what the file
  // system says. With `is_content` a file that is there is adopted instead, unless both have
  // changed (RegionOptions::image_is_content).
  static std::unique_ptr<ImageFile> open(PackStore& store, const std::string& branch,
                                         const format::Version& head, const PageSource& pages,
                                         const std::string& path, bool is_content = false);
  // For whoever writes the branch without its image: the next open() must not trust what was
  // noted. REQUIRES: the branch's lock.
  static void note_other_writer(PackStore& store, const std::string& branch,
                                std::uint64_t branch_id);
  // What was noted of the image; nothing: there was none, or nobody can tell.
  static std::optional<format::ImageState> last_state(PackStore& store, const std::string& branch,
                                                      std::uint64_t branch_id);
  // Whether the file that was noted, and is not in use, has been written or replaced since. False
  // when there is none.
  static bool changed_since(PackStore& store, const format::ImageState& state);
  // Removes all of it from a branch's directory. An image elsewhere stays.
  static void remove(PackStore& store, const std::string& branch);

  const std::string& path() const noexcept { return file_->path(); }
  // For mmap(2); Errc::unsupported when this file has none.
  int descriptor() const;
  // What a region over the image has: more than the head when another program has appended.
  std::uint64_t region_bytes() const noexcept { return region_bytes_; }
  // What the file has now.
  std::uint64_t file_bytes() const noexcept { return file_bytes_; }
  // What it had when it was opened, or at the last commit since.
  std::uint64_t committed_bytes() const noexcept { return committed_bytes_; }
  // The size that another program gave the file, where that is to be committed.
  std::optional<std::uint64_t> adopted_file_bytes() const noexcept { return adopted_file_bytes_; }
  // The pages that open() found to differ from the head, ascending.
  std::vector<format::PageNumber> take_adopted() noexcept { return std::move(adopted_); }

  // Another program's content is still to be committed.
  bool adopting() const noexcept { return state_.adopting; }

  // A region that grows, or takes that back. A file whose size is its own stays as it is, or goes
  // with the region when that ends before it.
  void resize(std::uint64_t region_bytes);
  // Makes the file at least this long at once. (It becomes shorter with note_commit().)
  void extend(std::uint64_t file_bytes);
  // Takes back what was not committed of both; of extend() only what lies behind `keep_bytes`.
  void drop_growth(std::uint64_t keep_bytes = 0);
  // Before a commit becomes durable: these pages (ascending) are going to be written. Durable.
  void announce(std::span<const format::PageNumber> pages);
  // After it, of the announced pages: writes these, which lie side by side; or those of them that
  // the image has otherwise. When it throws, any of them may be missing.
  void write(format::PageNumber first, std::span<const std::byte> content);
  void write(std::span<const format::PageNumber> pages,
             const std::function<const std::byte*(format::PageNumber)>& content);
  // All of the commit has been written. Versions that know their file's size: the file has it.
  void note_commit(const std::optional<std::uint64_t>& file_bytes = std::nullopt);
  // What another program wrote has been committed, all of it.
  void note_adoption_committed();
  // Syncs, and notes that the image holds `head`. Without it, the image counts as in use.
  void close(const format::Version& head);

 private:
  class Opening;
  ImageFile(PackStore& store, std::string branch, std::unique_ptr<base::File> file,
            TouchedSlots touched);
  void publish(format::ImageState state);
  void read(format::PageNumber first, std::span<std::byte> out) const;  // zero past the end
  void write_changed(format::PageNumber first, std::span<const std::byte> content);
  void write_run(format::PageNumber first, std::span<const std::byte> content);
  void sync();
  void sync_now_and_then();
  void set_size(std::uint64_t bytes);

  PackStore& store_;
  std::string branch_;
  std::unique_ptr<base::File> file_;
  TouchedSlots touched_;
  format::ImageState state_;  // as published last
  std::uint64_t region_bytes_ = 0;
  std::uint64_t file_bytes_ = 0;       // may end within the last page
  std::uint64_t committed_bytes_ = 0;  // file_bytes_ at the last commit
  std::uint64_t unsynced_bytes_ = 0;
  bool exact_ = false;  // the branch's versions know the file's size; it may lie in fewer pages
  std::optional<std::uint64_t> adopted_file_bytes_;
  bool sync_failed_ = false;  // what the medium holds is not known: the marks stay
  std::vector<format::PageNumber> adopted_;
};

}  // namespace vellum::store
