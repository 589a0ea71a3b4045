// A plain file whose msync() is failure-atomic: its journal, its mapping and its tracker together.
#include <vellum/atomic_file.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <mutex>
#include <optional>
#include <vector>

#include "base/fail.hpp"
#include "base/files/real_path.hpp"
#include "base/memory/process_memory.hpp"
#include "base/threads/fork_count.hpp"
#include "interfaces/atomic_file/file_journal.hpp"
#include "interfaces/atomic_file/journal_file.hpp"
#include "interfaces/atomic_file/page_watch.hpp"
#include "interfaces/atomic_file/window.hpp"
#include "memory/cards/marked_pages.hpp"
#include "memory/cards/tracked_range.hpp"

namespace vellum {

using atomic_file::MediumFile;
using cards::MarkedPage;
using format::RedoSpan;

namespace {

constexpr std::uint64_t kMinJournalBytes = 64u << 10;

AtomicFileOptions checked(AtomicFileOptions options, std::uint64_t size_bytes) {
  options.verify_cards |= cards::verify_by_environment();
  if (options.journal_bytes < kMinJournalBytes)
    fail(Errc::invalid_argument, "the journal of a file has at least 64 KiB");
  if (size_bytes > format::kMaxRedoFileBytes || options.capacity_bytes > format::kMaxRedoFileBytes)
    fail(Errc::invalid_argument, "an atomic file has at most 4 TiB");
  if (options.capacity_bytes == 0)
    options.capacity_bytes = std::min(format::kMaxRedoFileBytes, base::room_to_grow(size_bytes));
  options.capacity_bytes = std::max(options.capacity_bytes, size_bytes);
  return options;
}

void append_spans(const MarkedPage& marked, const std::byte* data, std::vector<RedoSpan>& out) {
  assert(marked.cards != 0);
  for (std::uint64_t left = marked.cards; left != 0;) {
    const int first = std::countr_zero(left);
    const int count = std::countr_one(left >> first);
    const std::uint64_t line = std::uint64_t{marked.page} * 64 + static_cast<unsigned>(first);
    out.push_back({line, static_cast<std::uint32_t>(count), data + line * format::kLineBytes});
    if (first + count == 64) break;
    left &= ~0ULL << (first + count);
  }
}

}  // namespace

struct AtomicFile::Impl {
  Impl(const std::string& file_path, const AtomicFileOptions& wanted);
  ~Impl() { finish(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void find_stores();
  MarkedPage missed_store(const std::vector<MarkedPage>& changed) const;
  void check_marks(const std::vector<MarkedPage>& changed);
  void clip_to_file();
  // Whether another process has opened the file: this is a child of fork(2).
  bool inherited() const noexcept { return base::fork_count() != born; }
  void require_own() const;
  bool append_record(std::uint64_t file_bytes);
  AtomicCommitReport commit();
  void put_back() noexcept;
  void resize(std::uint64_t size_bytes);
  void close();
  void finish() noexcept;

  const std::uint32_t born = base::fork_count();
  std::atomic<bool> closed{false};  // set with `mutex` held; then the members below are null
  base::Fs& fs = base::posix_fs();
  std::string path;
  AtomicFileOptions options;
  std::mutex mutex;
  std::unique_ptr<base::File> file;
  std::unique_ptr<MediumFile> image;
  std::optional<atomic_file::FileJournal> journal;
  std::optional<atomic_file::Window> window;
  std::optional<atomic_file::PageWatch> watch;
  void* data = nullptr;  // of the window; valid, like `medium`, while another thread closes
  Medium medium = Medium::disk;
  std::uint64_t commits = 0;
  std::uint64_t recorded_bytes = 0;  // size of the file by the last record or the file itself
  // Buffers of the current commit; kept for their memory.
  std::vector<MarkedPage> marked;  // taken from the cards
  std::vector<MarkedPage> stored;  // everything to commit
  std::vector<RedoSpan> spans;
  std::vector<std::byte> record;
};

AtomicFile::Impl::Impl(const std::string& file_path, const AtomicFileOptions& wanted)
    : path(base::real_path(file_path)) {
  base::require_pages_of_4_kib("an atomic file");
  file = fs.open(path, base::OpenMode::read_write);
  options = checked(wanted, file->size_bytes());
  journal.emplace(
      atomic_file::FileJournal::open(fs, path, *file, wanted.medium, wanted.journal_bytes, image));
  options = checked(wanted, image->size_bytes());
  image->barrier();  // earlier writes of other programs: commits only flush stores from now on
  recorded_bytes = image->size_bytes();
  const bool cards = options.tracker != Tracker::pages;
  window.emplace(options.capacity_bytes, options.base_address, cards);
  options.capacity_bytes = window->capacity_bytes();
  data = window->data();
  medium = image->byte_addressable() ? Medium::persistent_memory : Medium::disk;
  window->map(file->descriptor(), image->size_bytes());
  if (options.tracker != Tracker::cards || options.verify_cards)
    watch.emplace(window->data(), window->capacity_bytes(), *image);
}

void AtomicFile::Impl::require_own() const {
  if (inherited())
    fail(Errc::unsupported, "{}: was opened before fork(): only the parent may write it", path);
}

// The first changed line that is not marked; none: 0 cards.
MarkedPage AtomicFile::Impl::missed_store(const std::vector<MarkedPage>& changed) const {
  for (const MarkedPage& page : changed) {
    const std::uint64_t missed = page.cards & ~cards_of(marked, page.page);
    if (missed != 0) return {page.page, missed};
  }
  return {};
}

// Concurrent threads may have set marks since the marks were taken: only lines that are still
// unmarked were missed.
void AtomicFile::Impl::check_marks(const std::vector<MarkedPage>& changed) {
  if (missed_store(changed).cards == 0) return;
  std::vector<MarkedPage> later;
  window->tracked()->take(later);
  std::sort(later.begin(), later.end(), cards::by_page);
  marked = united(marked, later);
  const MarkedPage missed = missed_store(changed);
  if (missed.cards != 0) cards::throw_missed_store(path, window->data(), missed);
}

// Puts the lines to commit into `stored`.
void AtomicFile::Impl::find_stores() {
  marked.clear();
  if (window->tracked() != nullptr) window->tracked()->take(marked);
  if (!watch) {
    stored = marked;
    return;
  }
  std::sort(marked.begin(), marked.end(), cards::by_page);
  std::vector<MarkedPage> changed;
  watch->collect(image->size_bytes(), changed);
  if (options.verify_cards && window->tracked() != nullptr) check_marks(changed);
  stored = united(changed, options.tracker == Tracker::pages ? std::vector<MarkedPage>() : marked);
}

void AtomicFile::Impl::put_back() noexcept {
  if (window->tracked() != nullptr) window->tracked()->put_back(marked);
}

// Appends a durable record of `spans`. Returns whether a full journal was checkpointed first.
bool AtomicFile::Impl::append_record(std::uint64_t file_bytes) {
  assert(file_bytes <= window->capacity_bytes());
  atomic_file::RedoJournal& log = journal->log();
  const auto encode = [&] {
    encode_redo_record(log.header(), log.next_sequence(), file_bytes, spans, record);
  };
  encode();
  const bool full =
      !log.empty() && !log.fits(record.size(), format::kRedoLogBegin + options.journal_bytes);
  if (full) {
    log.checkpoint(*image);
    encode();  // now of another epoch
  }
  log.append(record);
  recorded_bytes = file_bytes;
  return full;
}

AtomicCommitReport AtomicFile::Impl::commit() {
  AtomicCommitReport report;
  try {
    find_stores();
    clip_to_file();
    spans.clear();
    for (const MarkedPage& page : stored) append_spans(page, window->data(), spans);
    if (!spans.empty() || image->size_bytes() != recorded_bytes) {
      report.checkpointed = append_record(image->size_bytes());
      report.bytes_written = record.size();
      ++commits;
    }
  } catch (...) {
    put_back();
    throw;
  }
  if (watch) {
    if (!spans.empty()) spans_in_record(record, spans);
    watch->settle(spans);
  }
  report.sequence = commits;
  report.pages_stored = stored.size();
  for (const RedoSpan& span : spans) report.cards_stored += span.count;
  return report;
}

// Stores past the end of the file on its last page do not count, as with mmap(2). Marks of later
// pages were set before the file was cut.
void AtomicFile::Impl::clip_to_file() {
  const std::uint64_t lines = (image->size_bytes() + format::kLineBytes - 1) / format::kLineBytes;
  const std::uint64_t last_lines = (1ULL << lines % 64) - 1;
  for (MarkedPage& page : stored)
    if (page.page >= lines / 64) page.cards &= page.page == lines / 64 ? last_lines : 0;
  std::erase_if(stored, [](const MarkedPage& page) { return page.cards == 0; });
}

// The cut is durable in the journal first: after a crash in between, the journal cuts the file.
void AtomicFile::Impl::resize(std::uint64_t size_bytes) {
  if (size_bytes > window->capacity_bytes())
    fail(Errc::invalid_argument, "{}: cannot be resized to {} bytes: its capacity is {}", path,
         size_bytes, window->capacity_bytes());
  const std::uint64_t before = image->size_bytes();
  if (size_bytes == before) return;
  if (size_bytes > before) {
    image->resize(size_bytes);
    window->open_up(size_bytes);
    return;
  }
  spans.clear();
  append_record(size_bytes);
  try {
    image->resize(size_bytes);
    window->forget(size_bytes, before);
    if (watch) watch->forget(size_bytes, before);
  } catch (const Error& error) {
    journal->log().poison(error.what());  // cut in the journal, but not in memory
    throw;
  }
}

void AtomicFile::Impl::close() {
  if (closed) return;
  try {
    journal->log().checkpoint(*image);
    journal->remove(fs, path);
  } catch (...) {  // the journal stays, with every commit
    finish();
    throw;
  }
  finish();
}

// Order: the watch is destroyed before the mapping that it watches. REQUIRES: not in a child of
// fork(2), unless the file was closed before.
void AtomicFile::Impl::finish() noexcept {
  assert(closed || !inherited());
  closed = true;
  watch.reset();
  window.reset();
  journal.reset();
  image.reset();
  file.reset();
}

namespace {

// Uses another name first: no process finds it shorter than its final size.
void make_file(const std::string& path, std::uint64_t size_bytes) {
  base::Fs& fs = base::posix_fs();
  if (fs.exists(path)) return;
  const auto file = atomic_file::start_journal(fs, path);  // only for the way it claims a name
  try {
    file->truncate(size_bytes);
    file->sync_data();
    fs.rename_new(file->path(), path);
  } catch (const Error& error) {
    atomic_file::discard_journal(fs, *file);
    if (error.code() != Errc::already_exists) throw;
  }
}

}  // namespace

AtomicFile::AtomicFile() noexcept = default;
AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;
AtomicFile::AtomicFile(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  AtomicFile old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

AtomicFile::~AtomicFile() {
  try {
    close();
  } catch (const std::exception&) {
    // The journal stays, with every commit.
  }
}

AtomicFile AtomicFile::open(const std::string& path, const AtomicFileOptions& options) {
  return AtomicFile(std::make_shared<Impl>(path, options));
}

AtomicFile AtomicFile::open_or_create(const std::string& path, std::uint64_t size_bytes,
                                      const AtomicFileOptions& options) {
  make_file(path, size_bytes);
  return open(path, options);
}

RecoveryReport AtomicFile::recover(const std::string& path, const RecoveryOptions& options) {
  base::Fs& fs = base::posix_fs();
  const std::string real = base::real_path(path);
  const auto file = fs.open(real, base::OpenMode::read_write);
  return atomic_file::FileJournal::recover(fs, real, *file, options);
}

bool AtomicFile::valid() const noexcept { return impl_ != nullptr && !impl_->closed; }

namespace {

template <typename Impl>
Impl& checked(const std::shared_ptr<Impl>& impl) {
  if (impl == nullptr || impl->closed) fail(Errc::invalid_argument, "this AtomicFile has no file");
  return *impl;
}

// One call at a time. Another thread may have closed the file before this one got the lock.
template <typename Impl>
std::unique_lock<std::mutex> take_turn(const std::shared_ptr<Impl>& impl) {
  checked(impl).require_own();
  std::unique_lock turn(impl->mutex);
  checked(impl);
  return turn;
}

}  // namespace

const std::string& AtomicFile::path() const { return checked(impl_).path; }
void* AtomicFile::data() const { return checked(impl_).data; }
std::uint64_t AtomicFile::size_bytes() const {
  if (checked(impl_).inherited()) return impl_->image->size_bytes();  // fixed since fork()
  const auto turn = take_turn(impl_);
  return impl_->image->size_bytes();
}
std::uint64_t AtomicFile::capacity_bytes() const { return checked(impl_).options.capacity_bytes; }
Tracker AtomicFile::tracker() const { return checked(impl_).options.tracker; }
Medium AtomicFile::medium() const { return checked(impl_).medium; }

AtomicCommitReport AtomicFile::commit() {
  const auto turn = take_turn(impl_);
  return impl_->commit();
}

void AtomicFile::resize(std::uint64_t size_bytes) {
  const auto turn = take_turn(impl_);
  impl_->resize(size_bytes);
}

void AtomicFile::checkpoint() {
  const auto turn = take_turn(impl_);
  impl_->journal->log().checkpoint(*impl_->image);
}

namespace {

// In a child of fork(2) everything stays allocated and unused: the journal, its lock and the
// mapping belong to the parent.
void keep_for_ever(std::shared_ptr<void> impl) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::shared_ptr<void>>;
  const std::lock_guard guard(mutex);
  kept->push_back(std::move(impl));
}

}  // namespace

void AtomicFile::close() {
  if (impl_ == nullptr || impl_->closed) return;
  if (impl_->inherited()) return keep_for_ever(std::move(impl_));
  const std::lock_guard turn(impl_->mutex);
  impl_->close();
}

void AtomicFile::close_but_leave_mapped() {
  const auto turn = take_turn(impl_);
  impl_->window->leave_mapped();
  impl_->close();
}

}  // namespace vellum
