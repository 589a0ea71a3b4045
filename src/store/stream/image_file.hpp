// store/stream/image_file.hpp: a branch's image for engine `mapped`.
//
// An image is a plain file with the head's content. The store is authoritative: a commit is durable
// in journal and packs before its pages are written to the image, and after a crash the image is
// restored to the head. Two files are in the journal's directory: image.state describes the image
// at the last time when it was known to equal the head, and image.touched has the ranges that may
// differ since (store/stream/write_intent.hpp).
//
// A file that another program has written after close() is *adopted*: its differences from the head
// are uncommitted content of the region.
//
// Bytes past the head's end can be written to the image before their commit, as its *tail*
// (ImageFile::write_tail()): a kill keeps it, a power failure does not. image.tail describes it
// (format/image_tail.hpp), and the next opening after a kill adopts it.
//
// Threads: one call at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "base/files/inode_lock.hpp"
#include "format/image_state.hpp"
#include "store/packs/record/pack_store.hpp"
#include "store/page_map/page_source.hpp"
#include "store/stream/write_intent.hpp"

namespace vellum::store {

class ImageFile {
 public:
  // Creates the image if it does not exist; repairs it after a crash. `path` empty: the image's
  // last path, or else `image` in the branch's directory. With `is_content`
  // (ImageOptions::is_content) an empty or shorter file is adopted unless both file and branch have
  // changed; after a crash, another file is adopted. REQUIRES: the branch's lock is held while the
  // image is open; `pages` is `head`'s content. Errors name the file. In addition to those of the
  // file system:
  // - busy: another process uses the file; corrupted: it is no regular file,
  // - already_exists: it is not recorded as the branch's and differs from it, or both have changed,
  // - invalid_argument: another program has truncated it, and the branch's versions do not record
  //   the file's size.
  static std::unique_ptr<ImageFile> open(PackStore& store, const std::string& branch,
                                         const format::Version& head, const PageSource& pages,
                                         const std::string& path, bool is_content = false);
  // For a writer of the branch that does not use its image. The next open() then does not trust the
  // recorded state. Errc::busy: the image has a tail, which that writer's commits would hide.
  // REQUIRES: the branch's lock.
  static void note_other_writer(PackStore& store, const std::string& branch,
                                const format::Version& head);
  // The recorded state of the image; nullopt: none, or it cannot be trusted.
  static std::optional<format::ImageState> last_state(PackStore& store, const std::string& branch,
                                                      std::uint64_t branch_id);
  // Whether the recorded file was written or replaced since. False if the file does not exist.
  // REQUIRES: the file is not in use.
  static bool changed_since(PackStore& store, const format::ImageState& state);

  const std::string& path() const noexcept { return file_->path(); }
  // For mmap(2). Errc::unsupported: this file has none.
  int descriptor() const;
  // The size of a region over the image: more than the head's if another program has appended.
  std::uint64_t region_bytes() const noexcept { return region_bytes_; }
  // The file's current size.
  std::uint64_t file_bytes() const noexcept { return file_bytes_; }
  // The file's size when it was opened, or at the last commit since.
  std::uint64_t committed_bytes() const noexcept { return committed_bytes_; }
  // The size that another program gave the file, if that size is to be committed.
  std::optional<std::uint64_t> adopted_file_bytes() const noexcept { return adopted_file_bytes_; }
  // The pages that open() found to differ from the head, ascending.
  std::vector<format::PageNumber> take_adopted() noexcept { return std::move(adopted_); }

  // Whether another program's content is still to be committed.
  bool adopting() const noexcept { return state_.adopting; }
  // Whether open() has found a tail: it is among the adopted pages.
  bool found_tail() const noexcept { return found_tail_; }

  // Grows the region, or undoes growth. A file with a size of its own keeps it, but is truncated to
  // the region's size. REQUIRES: whole pages.
  void resize(std::uint64_t region_bytes);
  // Extends the file to at least this size at once. (note_commit() truncates it.)
  void extend(std::uint64_t file_bytes);
  // Undoes uncommitted growth by resize() and extend(); by extend() only beyond `keep_bytes`.
  void drop_growth(std::uint64_t keep_bytes = 0);
  // Called before a commit becomes durable. Records durably that these pages (ascending) will be
  // written.
  void announce(std::span<const format::PageNumber> pages);
  // Called after the commit, for announced pages. The first writes adjacent pages. The second
  // writes the pages whose content differs in the image. If either throws, any of its pages may be
  // missing.
  void write(format::PageNumber first, std::span<const std::byte> content);
  void write(std::span<const format::PageNumber> pages,
             const std::function<const std::byte*(format::PageNumber)>& content);
  // Records that all pages of the commit are written. Truncates or extends the file to
  // `file_bytes`, for versions that record their file's size.
  void note_commit(const std::optional<std::uint64_t>& file_bytes = std::nullopt);
  // Records that all of another program's content is committed.
  void note_adoption_committed();
  // Writes the tail: all bytes between `head`'s end and the file's. After a kill during the call,
  // the image has the tail of the last call, or of this one. False: it is too long, this boot
  // cannot be identified, or another process waits for the branch (AskForBranch); nothing has
  // changed. REQUIRES: the file's size is its own (extend());
  // the image equals `head` before its end; the last tail since the last commit is the start of
  // this one.
  bool write_tail(const format::Version& head, std::span<const std::byte> content);
  // The end of the tail; 0: there has been none since the last commit.
  std::uint64_t tail_end_bytes() const noexcept { return tail_end_bytes_; }
  // Whether another process waits for the branch, if there is a tail.
  bool is_asked_for() const;
  // Syncs, and records that the image equals `head`. Without close(), the image counts as in use.
  void close(const format::Version& head);

 private:
  class Opening;
  ImageFile(PackStore& store, std::string branch, std::unique_ptr<base::File> file,
            WriteIntent intent);
  void publish(format::ImageState state, const base::FileIdentity& identity);
  void read(format::PageNumber first, std::span<std::byte> out) const;  // zero past the end
  void write_changed(format::PageNumber first, std::span<const std::byte> content);
  void write_range(format::PageNumber first, std::span<const std::byte> content);
  void sync();
  void sync_if_due();
  void set_size(std::uint64_t bytes);
  void forget_tail();

  PackStore& store_;
  std::string branch_;
  std::unique_ptr<base::InodeLock> lock_;  // of file_
  std::unique_ptr<base::File> file_;
  WriteIntent intent_;
  format::ImageState state_;  // as last published
  std::uint64_t region_bytes_ = 0;
  std::uint64_t file_bytes_ = 0;       // may end within the last page
  std::uint64_t committed_bytes_ = 0;  // file_bytes_ at the last commit
  std::uint64_t unsynced_bytes_ = 0;
  bool exact_ = false;  // versions record the file's size; it may need fewer pages than the region
  std::optional<std::uint64_t> adopted_file_bytes_;
  std::unique_ptr<base::File> tail_;  // image.tail; null: not opened yet
  std::uint64_t tail_end_bytes_ = 0;
  std::optional<base::FileIdentity>
      with_tail_;  // the file after write_tail(), until this object writes it again
  bool found_tail_ = false;
  bool sync_failed_ = false;  // the medium's content is unknown; the touched ranges are kept
  std::vector<format::PageNumber> adopted_;
};

}  // namespace vellum::store
