// Opens an image: finds the file, chooses a plan, and updates the file or the region.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <filesystem>

#include "base/fail.hpp"
#include "base/memory/zeros.hpp"
#include "format/wire/types.hpp"
#include "store/catalog/names.hpp"
#include "store/stream/image_file.hpp"
#include "store/stream/image_tail.hpp"

namespace vellum::store {

using format::ImageState;
using format::kPageBytes;
using format::PageNumber;

namespace {

constexpr std::size_t kPagesCompared = 256;

// nullopt: no state, or one that cannot be trusted. All pages are then compared.
std::optional<ImageState> read_state(PackStore& store, const std::string& branch,
                                     std::uint64_t branch_id) {
  const std::string file = store.branch_directory(branch) + "/" + kImageStateName;
  if (!store.fs().exists(file)) return std::nullopt;
  ImageState state;
  try {
    const auto bytes = base::read_whole(store.fs(), file, format::kMaxImageStateBytes);
    if (decode_image_state(bytes, store.file_seal(), state) != nullptr) return std::nullopt;
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted && e.code() != Errc::not_found) throw;
    return std::nullopt;
  }
  if (state.branch_id != branch_id) return std::nullopt;  // of an earlier branch of that name
  return state;
}

// With the same path the device number is ignored: it may change in a reboot.
bool is_same_file(const ImageState& known, const base::FileIdentity& found, bool same_path) {
  return known.inode == found.inode && known.born_ns == found.born_ns &&
         (known.device == found.device || same_path);
}

bool is_unwritten(const ImageState& known, const base::FileIdentity& found) {
  return known.size_bytes == found.size_bytes && known.modified_ns == found.modified_ns &&
         known.changed_ns == found.changed_ns;
}

std::string absolute_path(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  auto absolute = std::filesystem::absolute(path, error);
  if (error) fail(Errc::io, "{}: {}", path, error.message());
  auto text = absolute.lexically_normal().string();
  if (text.size() > format::kMaxImagePathBytes || text.find('\0') != std::string::npos) {
    fail(Errc::invalid_argument, "the path of an image cannot have {} bytes, or a zero byte",
         text.size());
  }
  return text;
}

// Opens or creates the file. Returns whether it was created.
bool open_or_create(base::Fs& fs, const std::string& path, std::unique_ptr<base::File>& file) {
  for (;;) {
    try {
      file = fs.open(path, base::OpenMode::read_write);
      return false;
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
    }
    try {
      file = fs.open(path, base::OpenMode::create_new);
      return true;
    } catch (const Error& e) {
      if (e.code() != Errc::already_exists) throw;
    }
  }
}

// REQUIRES: the image is not open.
bool has_tail(PackStore& store, const std::string& branch, const format::Version& head,
              const ImageState& state) {
  if (state.path.empty()) return false;
  try {
    const auto image = store.fs().open(state.path, base::OpenMode::read_only);
    return is_same_file(state, image->identity(), true) &&
           find_tail(store, branch, head, *image).has_value();
  } catch (const Error& error) {
    if (error.code() != Errc::not_found && error.code() != Errc::corrupted) throw;
    return false;
  }
}

struct LockedFile {
  std::unique_ptr<base::File> file;
  std::unique_ptr<base::InodeLock> lock;
  bool created = false;
};

// Like open_or_create(). Also locks the file, and checks that it still has its name.
LockedFile open_locked(base::Fs& fs, const std::string& path) {
  for (LockedFile out;;) {
    out.lock.reset();
    out.created = open_or_create(fs, path, out.file) || out.created;
    out.lock = base::InodeLock::try_take(*out.file, base::InodeLock::Mode::exclusive);
    if (out.lock == nullptr) fail(Errc::busy, "{}: in use as an image", path);
    if (!out.file->replaced()) return out;
  }
}

}  // namespace

class ImageFile::Opening {
 public:
  Opening(PackStore& store, const std::string& branch, const format::Version& head,
          const PageSource& pages, bool is_content)
      : store_(store),
        branch_(branch),
        head_(head),
        pages_(pages),
        is_content_(is_content),
        known_(read_state(store, branch, head.branch_id)) {}

  std::unique_ptr<ImageFile> run(const std::string& given) {
    path_ = absolute_path(given);
    if (path_.empty() && known_) path_ = known_->path;
    const std::string file =
        path_.empty() ? store_.branch_directory(branch_) + "/" + kImageName : path_;
    LockedFile opened = open_locked(store_.fs(), file);
    identity_ = opened.file->identity();
    image_.reset(new ImageFile(store_, branch_, std::move(opened.file), open_write_intent()));
    image_->lock_ = std::move(opened.lock);
    // An empty file may be the branch's content, or another program may have truncated it.
    const bool may_be_empty = is_content_ || (head_.file_bytes.has_value() && is_known_file());
    fresh_ = opened.created || (identity_.size_bytes == 0 && !may_be_empty);
    tail_ = find_tail(store_, branch_, head_, *image_->file_);
    carry_out(decide());
    return std::move(image_);
  }

 private:
  enum class Plan {
    trust,            // the file equals the head
    repair,           // the file equals the head, except for ranges that may differ
    keep_tail,        // the same, and a tail follows, which is the region's content
    rewrite,          // replace the file's content by the head
    adopt,            // take the file's content as the region's
    only_if_the_head  // refuse the file unless it equals the head
  };

  WriteIntent open_write_intent() {
    std::unique_ptr<base::File> file;
    open_or_create(store_.fs(), store_.branch_directory(branch_) + "/" + kTouchedName, file);
    return {std::move(file), store_.superblock().store_id, head_.branch_id};
  }

  bool head_is_known() const {
    assert(known_.has_value());
    return known_->sequence == head_.sequence && known_->time_ns == head_.time_ns;
  }
  bool is_known_file() const {
    return known_ && is_same_file(*known_, identity_, known_->path == path_);
  }
  bool is_unchanged() const { return is_known_file() && is_unwritten(*known_, identity_); }

  bool has_size_of_head() const {
    return !head_.file_bytes.has_value() || *head_.file_bytes == identity_.size_bytes;
  }

  // The recorded file, or another one with its path.
  bool is_known_image() const { return known_ && (is_known_file() || known_->path == path_); }

  Plan decide() const {
    const bool known = is_known_image();
    if (known && known_->in_use) return after_a_crash();
    if (known && !fresh_) return after_a_close();
    if (fresh_ || path_.empty()) return Plan::rewrite;
    return head_.sequence == 0 ? Plan::adopt : Plan::only_if_the_head;
  }

  Plan after_a_crash() const {
    if (fresh_) return Plan::rewrite;
    if (!is_known_file() && is_content_) return Plan::adopt;
    if (!is_known_file() && !path_.empty()) {
      fail(Errc::already_exists,
           "{}: the image of {} was in use during a crash, and this is another file: remove it to "
           "have the image created again, or import it",
           image_->path(), label());
    }
    if (known_->adopting && head_is_known()) return Plan::adopt;
    if (known_->adopting && known_->all_touched) refuse_both_changed();
    const bool any = known_->adopting || known_->all_touched || !is_known_file();
    if (any) return Plan::rewrite;
    return tail_ ? Plan::keep_tail : Plan::repair;
  }

  Plan after_a_close() const {
    if (is_unchanged()) return head_is_known() && has_size_of_head() ? Plan::trust : Plan::rewrite;
    // With another head both have changed, possibly to the same content, as after restoring a
    // backup of the file.
    return head_is_known() ? Plan::adopt : Plan::only_if_the_head;
  }

  [[noreturn]] void refuse_both_changed() const {
    fail(Errc::already_exists,
         "{}: another program has written the image, and {} has had commits without it: remove it "
         "to have the image created again, or import it",
         image_->path(), label());
  }

  std::string label() const { return "branch '" + branch_ + "' of " + store_.path(); }

  void carry_out(Plan plan) {
    ImageFile& image = *image_;
    const bool all = plan == Plan::rewrite;
    if (plan == Plan::adopt || plan == Plan::only_if_the_head) take_content(plan);
    if (all) publish(true, false);
    if (all || plan == Plan::repair) rewrite(all);
    if (plan == Plan::keep_tail)
      keep_tail();
    else
      discard_tail();
    if (head_.file_bytes.has_value() || image.adopted_file_bytes_.has_value()) {
      image.exact_ = true;
      image.region_bytes_ = std::max(image.region_bytes_, head_.region_bytes);
    } else if (image.region_bytes() < head_.region_bytes) {
      image.resize(head_.region_bytes);
    }
    image.intent_.reset(format::pages_in(image.region_bytes()));
    if (plan == Plan::repair || plan == Plan::keep_tail) {
      image.state_ = *known_;  // still valid
    } else {
      publish(false, !image.adopted_.empty() || image.region_bytes() > head_.region_bytes ||
                         image.adopted_file_bytes_ != std::nullopt);
    }
    if (plan == Plan::adopt) extend_to_the_head();
  }

  // The missing end of a shorter file is zero in the region and will be committed as zero. Until
  // then the file is extended by these pages. The state published before has the file's original
  // size.
  void extend_to_the_head() {
    const bool exact = head_.file_bytes.has_value() || image_->adopted_file_bytes_.has_value();
    const std::uint64_t pages =
        exact ? format::pages_in(head_.file_bytes.value_or(head_.region_bytes)) : 0;
    if (pages > format::pages_in(image_->file_bytes_)) image_->extend(pages * kPageBytes);
  }

  void publish(bool all_touched, bool adopting) {
    ImageState state;
    state.branch_id = head_.branch_id;
    state.in_use = true;
    state.all_touched = all_touched;
    state.adopting = adopting;
    state.sequence = head_.sequence;
    state.time_ns = head_.time_ns;
    state.path = path_;
    image_->publish(std::move(state), image_->file_->identity());
  }

  // Keeps another program's content, and compares it with the head.
  void take_content(Plan plan) {
    ImageFile& image = *image_;
    if (image.region_bytes() > format::kMaxRegionBytes) {
      fail(Errc::invalid_argument, "{}: larger than the largest region", image.path());
    }
    if (plan == Plan::adopt) take_size();
    const bool both_changed = plan == Plan::only_if_the_head && is_known_image();
    const bool exact = head_.file_bytes.has_value() || image.adopted_file_bytes_.has_value();
    if (image.region_bytes() < head_.region_bytes && head_.sequence > 0 && !exact) {
      if (both_changed) refuse_both_changed();
      fail(Errc::invalid_argument,
           "{}: {} bytes, where {} has {}: a region cannot shrink; extend the file, or import it",
           image.path(), image.file_bytes_, label(), head_.region_bytes);
    }
    const auto note = [&](PageNumber page, const std::byte*) { image.adopted_.push_back(page); };
    if (plan == Plan::adopt) {
      compare(image.region_bytes(), nullptr, note);
      adopt_zeros(format::pages_in(image.region_bytes()), pages_of_head());
      return;
    }
    compare(std::max(image.region_bytes(), head_.region_bytes), nullptr, note);
    const bool longer = image.region_bytes() > head_.region_bytes;
    if (image.adopted_.empty() && !longer && has_size_of_head()) return;
    if (both_changed) refuse_both_changed();
    fail(Errc::already_exists,
         "{}: exists, is not recorded as the image of {}, and differs from it: remove it to have "
         "the "
         "image created, or import it",
         image.path(), label());
  }

  // Pages past the head's own end are ignored, whatever their earlier content.
  PageNumber pages_of_head() const {
    return format::pages_in(head_.file_bytes.value_or(head_.region_bytes));
  }

  // Pages past the file's end are zero. Without reading them, they differ where the head is not
  // zero.
  void adopt_zeros(PageNumber first, PageNumber end) {
    while (first < end) {
      first += pages_.zeros_from(first, end - first);
      if (first < end) image_->adopted_.push_back(first++);
    }
  }

  // Adopts the file's size if it is content, versions record it, or it is not of whole pages.
  void take_size() {
    ImageFile& image = *image_;
    const auto counts = [&](std::uint64_t bytes) {
      const bool within_a_page = bytes % kPageBytes != 0 && bytes + kPageBytes > head_.region_bytes;
      return is_content_ || head_.file_bytes.has_value() || within_a_page;
    };
    // A crash during an adoption may leave the file longer than it was before.
    if (known_ && known_->in_use && known_->adopting && counts(known_->size_bytes) &&
        known_->size_bytes < image.file_bytes_ && zero_from(known_->size_bytes)) {
      image.set_size(known_->size_bytes);
      image.region_bytes_ = format::pages_in(image.file_bytes_) * kPageBytes;
      image.committed_bytes_ = image.file_bytes_;
    }
    if (!counts(image.file_bytes_)) return;
    if (head_.file_bytes == image.file_bytes_) return;
    image.exact_ = true;
    image.adopted_file_bytes_ = image.file_bytes_;
  }

  bool zero_from(std::uint64_t bytes) const {
    std::vector<std::byte> some(kPagesCompared * kPageBytes);
    PageNumber page = bytes / kPageBytes;
    std::size_t skip = bytes % kPageBytes;
    while (page * kPageBytes < image_->file_bytes_) {
      image_->read(page, some);
      if (!base::is_zero(std::span(some).subspan(skip))) return false;
      skip = 0;
      const std::uint64_t next = (page + kPagesCompared) * kPageBytes;
      page =
          std::min(image_->file_->next_data(next), image_->file_bytes_ + kPageBytes) / kPageBytes;
    }
    return true;
  }

  // Writes the head's content to the image: to the ranges that may differ, or to all.
  void rewrite(bool all) {
    ImageFile& image = *image_;
    const std::uint64_t bytes = head_.file_bytes.has_value()
                                    ? format::pages_in(*head_.file_bytes) * kPageBytes
                                    : head_.region_bytes;
    const std::uint64_t was = all || !known_ ? image.file_bytes_ : known_->size_bytes;
    image.file_->truncate(bytes);
    image.file_bytes_ = image.committed_bytes_ = bytes;
    image.region_bytes_ = head_.region_bytes;
    const auto touched = [&](PageNumber page) { return image.intent_.touched(page); };
    const auto put = [&](PageNumber page, const std::byte* content) {
      image.file_->pwrite({content, kPageBytes}, page * kPageBytes);
    };
    compare(bytes, all ? nullptr : std::function<bool(PageNumber)>(touched), put);
    if (head_.file_bytes.has_value()) {
      image.set_size(*head_.file_bytes);
      image.committed_bytes_ = image.file_bytes_;
    } else {
      end_within_the_page(was);
    }
    image.sync();
  }

  // Repairs the part before the tail, and cuts the file after it. Until the tail is committed, its
  // record stays valid: the next opening after a crash finds the same.
  void keep_tail() {
    ImageFile& image = *image_;
    image.file_->truncate(tail_->end_bytes);
    image.file_bytes_ = image.committed_bytes_ = tail_->end_bytes;
    const auto touched = [&](PageNumber page) { return image.intent_.touched(page); };
    compare(tail_->begin_bytes, touched, [&](PageNumber page, const std::byte* content) {
      const std::uint64_t at = page * kPageBytes;
      const auto bytes = std::min<std::uint64_t>(kPageBytes, tail_->begin_bytes - at);
      image.file_->pwrite({content, bytes}, at);
    });
    image.sync();
    const PageNumber first = tail_->begin_bytes / kPageBytes;
    for (PageNumber page = first; page < format::pages_in(tail_->end_bytes); ++page)
      image.adopted_.push_back(page);
    image.region_bytes_ = format::pages_in(tail_->end_bytes) * kPageBytes;
    image.adopted_file_bytes_ = image.tail_end_bytes_ = tail_->end_bytes;
    image.tail_ = open_tail(store_, branch_, false);
    image.found_tail_ = true;
  }

  // The file does not have the recorded tail, but may have the same bytes again later.
  void discard_tail() {
    std::array<std::byte, format::kImageTailBytes> record{};
    const auto file = open_tail(store_, branch_, false);
    if (file == nullptr || file->size_bytes() < record.size()) return;
    file->pread(record, 0);
    if (base::is_zero(record)) return;
    file->pwrite(std::array<std::byte, format::kImageTailBytes>{}, 0);
  }

  // A file that ended within its last page gets the same end again, unless the region has data past
  // it.
  void end_within_the_page(std::uint64_t bytes) {
    if (bytes >= head_.region_bytes || format::pages_in(bytes) * kPageBytes != head_.region_bytes)
      return;
    std::vector<std::byte> last(kPageBytes);
    pages_.read(bytes / kPageBytes, 1, last.data());
    const auto tail = std::span(last).subspan(bytes % kPageBytes);
    if (std::any_of(tail.begin(), tail.end(), [](std::byte b) { return b != std::byte{0}; }))
      return;
    image_->file_->truncate(bytes);
    image_->file_bytes_ = image_->committed_bytes_ = bytes;
  }

  // Calls `visit` for each page that differs between head and image, with the head's content.
  void compare(std::uint64_t bytes, const std::function<bool(PageNumber)>& only,
               const std::function<void(PageNumber, const std::byte*)>& visit) {
    const PageNumber pages = format::pages_in(bytes);
    const std::uint64_t most = std::min<std::uint64_t>(kPagesCompared, pages);
    std::vector<std::byte> ours(most * kPageBytes), theirs(ours.size());
    for (PageNumber page = 0; page < pages;) {
      page += empty_range(page, pages - page);
      // Stops at the end of a touched range: the next range may be known to be equal.
      const std::size_t n =
          std::min<std::uint64_t>(kPagesCompared - page % kPagesCompared, pages - page);
      if (n == 0) break;
      if (!only || only(page)) compare_pages(page, n, ours, theirs, visit);
      page += n;
    }
  }

  // The pages that are zero in the head and a hole in the image: most of a sparse region.
  std::uint64_t empty_range(PageNumber first, std::uint64_t limit) const {
    const std::uint64_t zeros = pages_.zeros_from(first, limit);
    if (zeros == 0 || fresh_) return zeros;
    const std::uint64_t data = image_->file_->next_data(first * kPageBytes) / kPageBytes;
    return std::min(zeros, data - first);
  }

  void compare_pages(PageNumber first, std::size_t count, std::vector<std::byte>& ours,
                     std::vector<std::byte>& theirs,
                     const std::function<void(PageNumber, const std::byte*)>& visit) {
    const std::size_t bytes = count * kPageBytes;
    assert(bytes <= ours.size() && ours.size() == theirs.size());
    image_->read(first, std::span(theirs).first(bytes));
    if (pages_.zeros_from(first, count) >= count) {
      std::fill_n(ours.begin(), bytes, std::byte{0});
    } else {
      pages_.read(first, count, ours.data());
    }
    if (std::memcmp(ours.data(), theirs.data(), bytes) == 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      const std::byte* const content = ours.data() + i * kPageBytes;
      if (std::memcmp(content, theirs.data() + i * kPageBytes, kPageBytes) != 0)
        visit(first + i, content);
    }
  }

  PackStore& store_;
  const std::string& branch_;
  const format::Version& head_;
  const PageSource& pages_;
  const bool is_content_;
  std::optional<ImageState> known_;
  std::optional<format::ImageTail> tail_;
  std::string path_;  // as in ImageState
  base::FileIdentity identity_;
  bool fresh_ = false;  // newly created, or empty
  std::unique_ptr<ImageFile> image_;
};

std::unique_ptr<ImageFile> ImageFile::open(PackStore& store, const std::string& branch,
                                           const format::Version& head, const PageSource& pages,
                                           const std::string& path, bool is_content) {
  store.require_plain("a branch's image (engine mapped)");
  return Opening(store, branch, head, pages, is_content).run(path);
}

void ImageFile::note_other_writer(PackStore& store, const std::string& branch,
                                  const format::Version& head) {
  auto state = read_state(store, branch, head.branch_id);
  if (!state || !state->in_use || state->all_touched) return;
  if (has_tail(store, branch, head, *state)) {
    fail(Errc::busy,
         "branch '{}' of {}: a killed program has appended to its image {} after the last commit; "
         "open the branch with it once",
         branch, store.path(), state->path);
  }
  state->all_touched = true;
  base::publish_file(store.fs(), store.tmp_directory(), store.branch_directory(branch),
                     kImageStateName, format::encode_image_state(*state, store.file_seal()), true);
}

std::optional<ImageState> ImageFile::last_state(PackStore& store, const std::string& branch,
                                                std::uint64_t branch_id) {
  return read_state(store, branch, branch_id);
}

bool ImageFile::changed_since(PackStore& store, const ImageState& state) {
  try {
    const auto found = store.fs().open(state.path, base::OpenMode::read_only)->identity();
    return !is_same_file(state, found, true) || !is_unwritten(state, found);
  } catch (const Error& error) {
    return error.code() != Errc::not_found;
  }
}

}  // namespace vellum::store
