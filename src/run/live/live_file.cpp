#include "run/live/live_file.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <tuple>
#include <vellum/error.hpp>

#include "base/clock.hpp"
#include "base/error_number.hpp"
#include "base/fail.hpp"
#include "base/round_up.hpp"
#include "base/threads/fork_count.hpp"
#include "base/threads/per_process.hpp"
#include "format/wire/types.hpp"
#include "memory/kernel/guarded_copy.hpp"
#include "region/api/when_free.hpp"
#include "region/region_impl.hpp"
#include "run/live/read_views.hpp"
#include "run/process/real.hpp"
#include "run/run/run_record.hpp"

namespace vellum::preload {
namespace {

using format::kPageBytes;

// The run's store, which a process's live files share: a separate store for each would cost a
// megabyte of memory and a descriptor. It stays open while a pointer to it exists. A child of
// fork(2) gets its own. Throws vellum::Error.
std::shared_ptr<Store> store_of_process(const std::string& path) {
  static base::SharedInProcess<Store> shared;
  return shared.get([&] { return std::make_shared<Store>(Store::open(path)); });
}

// Address space costs nothing, but is limited to 128 TiB, and a region takes its capacity twice. A
// program may map far more than the file has, and the file grows into that. The first files
// therefore get much, and each further one gets a sixteenth of the rest, down to the minimum.
// 10,000 files take 68 TiB if they are small.
constexpr std::uint64_t kMaxCapacityBytes = 1ULL << 40, kMinCapacityBytes = 1ULL << 30;
constexpr std::uint64_t kSharedBytes = 24ULL << 40;
std::atomic<std::uint64_t> reserved_bytes{0};  // by all live files

std::uint64_t capacity_for(std::uint64_t file_bytes) noexcept {
  const std::uint64_t reserved = reserved_bytes;
  const std::uint64_t left = reserved < kSharedBytes ? kSharedBytes - reserved : 0;
  const std::uint64_t share = std::clamp(left / 16, kMinCapacityBytes, kMaxCapacityBytes);
  return std::max(std::bit_ceil(share / 2 + 1),
                  std::min(4 * file_bytes, file_bytes + kMaxCapacityBytes));
}

// RLIMIT_DATA limits writable memory, whether or not it is touched.
bool is_free(std::uint64_t bytes) noexcept {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  void* const at = VELLUM_REAL(mmap)(nullptr, bytes, limited ? PROT_READ | PROT_WRITE : PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at != MAP_FAILED && VELLUM_REAL(munmap)(at, bytes) == 0;
}

// If address space is limited (ulimit -v or -d, valgrind), a file gets less, at most half of the
// available space.
std::uint64_t free_capacity_for(std::uint64_t file_bytes) noexcept {
  constexpr std::uint64_t kMinBytes = 64u << 20;
  std::uint64_t capacity = capacity_for(file_bytes);
  while (capacity / 4 >= std::max(kMinBytes, 2 * file_bytes) && !is_free(4 * capacity))
    capacity /= 4;
  return base::round_up(capacity, kPageBytes);
}

std::uint64_t bytes_of_file(const std::string& path) {
  struct stat status;
  if (VELLUM_REAL(stat)(path.c_str(), &status) != 0 || status.st_size < 0) return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

// Bounds of the growth step of memory for a file that is appended to. The file has its own size.
constexpr std::uint64_t kMinRoomBytes = 1u << 20, kMaxRoomBytes = 16u << 20;

Region open(Store& store, const Config& config, const RunTarget& target) {
  RegionOptions options;
  options.image.path = target.path;
  options.capacity_bytes = free_capacity_for(bytes_of_file(target.path));
  // A file that was recreated under the name is an empty file, not the branch's content.
  options.image.is_content = true;
  options.background_gc = config.background_gc;
  if (store.contains(target.branch)) {
    Region region = store.open_region(target.branch, options);
    region.resize_file(region.file_bytes());  // from now on each version has its size
    region.commit("as the file was found");
    return region;
  }
  struct stat status;
  const bool there = VELLUM_REAL(stat)(target.path.c_str(), &status) == 0;
  Region region = store.create_region(target.branch, 1, options);
  // For a new file this is the empty version that a kill before the first commit leaves.
  region.resize_file(there ? static_cast<std::uint64_t>(status.st_size) : 0);
  region.commit("as it was before the first run");
  return region;
}

// Another run has the branch open briefly when it begins and when it ends, and another process of
// this one after it has closed the file (kept_files.cpp).
Region open_when_free(Store& store, const Config& config, const RunTarget& target) {
  constexpr auto kMaxWaiting = std::chrono::seconds(1);
  const auto end = std::chrono::steady_clock::now() + kMaxWaiting;
  return api::when_free(config.store, target.branch, end, {Errc::busy, Errc::already_exists},
                        [&] { return open(store, config, target); });
}

std::string inherited_message(const std::string& path) {
  return "vellum run: " + path +
         ": was open before fork(): only the parent may write it, one process at a time\n";
}

}  // namespace

thread_local int ReentrancyGuard::depth = 0;
std::atomic<std::uint64_t> LiveFile::last_position_{0};
std::atomic<std::size_t> LiveFile::written_count_{0};

int reported(const std::string& path, const std::function<void()>& body) noexcept {
  const ReentrancyGuard inside;
  return base::error_of(body, [&](const char* what) {
    std::fprintf(stderr, "vellum run: %s: %s\n", path.c_str(), what);
  });
}

LiveRanges& live_ranges() noexcept {
  static constinit LiveRanges ranges;
  return ranges;
}

LiveFile::LiveFile(const Config& config, const RunTarget& target)
    : path_(target.path),
      branch_(target.branch),
      inherited_message_(inherited_message(path_)),
      snapshot_every_(config.snapshot_every),
      target_(config.target_for(target.path)),
      born_(base::fork_count()),
      store_(store_of_process(config.store)),
      region_(open_when_free(*store_, config, target)),
      data_(static_cast<std::byte*>(region_.data())),
      capacity_bytes_(region_.capacity_bytes()),
      last_kept_(region_.sequence()),
      committed_meta_(data_, region_.file_bytes()) {
  // A child of fork() may read its own copy of the mappings.
  madvise(data_, capacity_bytes_, MADV_DOFORK);
  struct stat status{};
  VELLUM_REAL(stat)(path_.c_str(), &status);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  if (!live_ranges().add(data_, capacity_bytes_))
    fail(Errc::unsupported, "too many files are open for writing");
  reserved_bytes += capacity_bytes_;
  note_own_change();
}

LiveFile::~LiveFile() {
  set_written_since(0);
  release_views();
  live_ranges().remove(data_);
  reserved_bytes -= capacity_bytes_;
  if (left_ >= 0) VELLUM_REAL(close)(left_);
  if (left_ >= 0 || !inherited()) return;
  region::remove_route(this);
  [[maybe_unused]] auto* left = new (std::nothrow) Region(std::move(region_));
  VELLUM_REAL(munmap)(data_, capacity_bytes_);
}

bool LiveFile::inherited() const noexcept { return base::fork_count() != born_; }

int LiveFile::refuse_inherited() const {
  if (!inherited()) return 0;
  std::fputs(inherited_message_.c_str(), stderr);
  return ENOTSUP;
}

// A program outside this process has its own memory of the file. Nothing prevents it from writing,
// but its writes are detected. REQUIRES: commit_mutex_.
void LiveFile::report_other_writers() {
  const std::lock_guard lock(modified_mutex_);
  const std::int64_t now_ns = modified_ns();
  const bool known = modified_ns_ != 0 && now_ns != 0;
  if (told_of_other_writers_ || !known || now_ns == modified_ns_) return;
  told_of_other_writers_ = true;
  note_changed(target_);
  std::fprintf(stderr,
               "vellum run: %s: another program has changed it meanwhile: those changes may be "
               "lost, or mixed with this program's\n",
               path_.c_str());
}

void LiveFile::note_own_change() {
  const std::lock_guard lock(modified_mutex_);
  modified_ns_ = modified_ns();
}

bool LiveFile::has_its_name() const {
  struct stat status;
  return VELLUM_REAL(stat)(path_.c_str(), &status) == 0 && status.st_ino == inode_ &&
         status.st_dev == device_;
}

// 0: unknown. Another file may have the name by now.
std::int64_t LiveFile::modified_ns() const {
  struct stat status;
  if (VELLUM_REAL(stat)(path_.c_str(), &status) != 0 || status.st_ino != inode_ ||
      status.st_dev != device_)
    return 0;
  return base::nanoseconds_of(status.st_mtim);
}

std::uint64_t LiveFile::size_bytes() const {
  const std::shared_lock lock(size_mutex_);
  if (left_ < 0) return region_.file_bytes();
  struct stat status{};
  VELLUM_REAL(fstat)(left_, &status);
  return static_cast<std::uint64_t>(status.st_size);
}

ssize_t LiveFile::read_at(void* to, std::size_t length_bytes, std::uint64_t offset_bytes) const {
  const std::shared_lock lock(size_mutex_);
  if (left_ >= 0)
    return VELLUM_REAL(pread)(left_, to, length_bytes, static_cast<off_t>(offset_bytes));
  const std::uint64_t size = region_.file_bytes();
  if (offset_bytes >= size) return 0;
  const std::size_t count = std::min<std::uint64_t>(length_bytes, size - offset_bytes);
  const std::size_t copied = region::copy_guarded(to, data_ + offset_bytes, count);
  return copied == 0 && count != 0 ? (errno = EFAULT, -1) : static_cast<ssize_t>(copied);
}

ssize_t LiveFile::write_at(const void* from, std::size_t length_bytes, std::uint64_t& offset_bytes,
                           bool append) {
  if (const int error = refuse_inherited()) return errno = error, -1;
  if (length_bytes == 0) return 0;
  if (!append && offset_bytes > capacity_bytes_) return errno = refuse_size(), -1;
  std::shared_lock shared(size_mutex_);
  if (left_ >= 0) return write_left(from, length_bytes, offset_bytes, append);
  std::unique_lock<std::shared_mutex> alone;
  std::uint64_t size_before = 0;
  if (append || offset_bytes + length_bytes > region_.file_bytes()) {
    shared.unlock();
    alone = std::unique_lock(size_mutex_);
    if (left_ >= 0) return write_left(from, length_bytes, offset_bytes, append);
    size_before = region_.file_bytes();
    if (append) offset_bytes = size_before;
    // Another writer may have intervened.
    const std::uint64_t end = std::max(offset_bytes + length_bytes, size_before);
    if (const int error = set_size(end)) return errno = error, -1;
  }
  const std::size_t copied = region::copy_guarded(data_ + offset_bytes, from, length_bytes);
  if (copied != 0) note_written(offset_bytes, copied);
  if (copied != 0) read_views().show(data_, offset_bytes, copied);
  if (copied < length_bytes && alone.owns_lock())
    set_size(std::max(size_before, copied == 0 ? 0 : offset_bytes + copied));
  return copied == 0 ? (errno = EFAULT, -1) : static_cast<ssize_t>(copied);
}

// Call after the change is recorded for the next commit: the commit resets the position first.
void LiveFile::take_position() noexcept {
  unkept_ = true;
  std::uint64_t none = 0;
  if (written_since_ == 0 && written_since_.compare_exchange_strong(none, ++last_position_))
    ++written_count_;
}

void LiveFile::set_written_since(std::uint64_t position) noexcept {
  const std::uint64_t before = written_since_.exchange(position);
  if (before == 0 && position != 0) ++written_count_;
  if (before != 0 && position == 0) --written_count_;
}

// Call after the write: otherwise a concurrent commit could consume the note without the bytes.
void LiveFile::note_written(std::uint64_t offset_bytes, std::size_t length_bytes) {
  constexpr std::size_t kMaxRanges = 64u << 10;
  if (mapped_writable_) return take_position();
  const std::lock_guard lock(written_mutex_);
  lowest_written_ = std::min(lowest_written_, offset_bytes);
  if (!written_.empty() &&
      written_.back().offset_bytes + written_.back().length_bytes == offset_bytes) {
    written_.back().length_bytes += length_bytes;
  } else if (written_.size() < kMaxRanges) {
    written_.push_back({offset_bytes, length_bytes});
  } else {
    anywhere_ = true;
  }
  take_position();
}

// Committed content is read from the kernel's cache again, as for any file: that saves a copy in
// memory, and is faster if the kernel has large folios.
void LiveFile::drop_copies(const std::vector<ByteRange>& committed) {
  const std::unique_lock alone(size_mutex_);  // no writers
  const std::lock_guard lock(written_mutex_);
  if (!mapped_writable_ && !anywhere_ && written_.empty()) region_.drop_copies(committed);
}

void LiveFile::note_mapped_writable() {
  const std::unique_lock alone(size_mutex_);  // excludes drop_copies()
  mapped_writable_ = true;
}

CommitReport LiveFile::commit_written() {
  std::vector<ByteRange> written;
  bool anywhere = false;
  {
    const std::lock_guard lock(written_mutex_);
    written.swap(written_);
    std::swap(anywhere, anywhere_);
    lowest_written_ = UINT64_MAX;
  }
  try {
    if (anywhere || mapped_writable_) return region_.commit();
    const CommitReport report = region_.commit_ranges(written);
    drop_copies(written);
    return report;
  } catch (...) {
    const std::lock_guard lock(written_mutex_);
    anywhere_ = true;
    throw;
  }
}

int LiveFile::refuse_size() {
  if (!told_of_size_.exchange(true))
    std::fprintf(stderr,
                 "vellum run: %s: cannot grow beyond %llu MiB before it is closed: the other open "
                 "files leave no more address space\n",
                 path_.c_str(), static_cast<unsigned long long>(capacity_bytes_ >> 20));
  return EFBIG;
}

// REQUIRES: size_mutex_. Zeroes the truncated part of a shorter file.
int LiveFile::set_size(std::uint64_t size_bytes) {
  if (size_bytes == region_.file_bytes()) return 0;
  if (size_bytes > capacity_bytes_) return refuse_size();
  if (size_bytes < region_.file_bytes()) {
    const std::lock_guard lock(written_mutex_);
    anywhere_ = true;
  }
  const std::uint64_t room =
      std::clamp<std::uint64_t>(size_bytes / 8, kMinRoomBytes, kMaxRoomBytes);
  const std::lock_guard lock(modified_mutex_);
  const std::uint64_t before = region_.file_bytes();
  const int error = reported(path_, [&] { region_.resize_file(size_bytes, room); });
  if (size_bytes < before) read_views().show(data_, size_bytes, before - size_bytes);
  if (modified_ns_ != 0) modified_ns_ = modified_ns();
  take_position();
  return error;
}

int LiveFile::resize(std::uint64_t size_bytes) {
  if (const int error = refuse_inherited()) return error;
  const std::unique_lock lock(size_mutex_);
  if (left_ >= 0)
    return VELLUM_REAL(ftruncate)(left_, static_cast<off_t>(size_bytes)) == 0 ? 0 : errno;
  return set_size(size_bytes);
}

int LiveFile::clear(std::uint64_t offset_bytes, std::uint64_t length_bytes) {
  if (const int error = refuse_inherited()) return error;
  const std::unique_lock lock(size_mutex_);
  if (left_ >= 0) return EOPNOTSUPP;  // in this state: the error of file systems without support
  const std::uint64_t size = region_.file_bytes();
  if (offset_bytes >= size) return 0;
  const std::uint64_t count = std::min(length_bytes, size - offset_bytes);
  const int error = reported(path_, [&] { region_.zero({offset_bytes, count}); });
  read_views().show(data_, offset_bytes, count);
  constexpr std::uint64_t kFewBytes = 16u << 20;  // up to this, pages are named one by one
  if (count <= kFewBytes) {
    note_written(offset_bytes, count);
  } else {
    const std::lock_guard written(written_mutex_);
    anywhere_ = true;
    take_position();
  }
  return error;
}

int LiveFile::commit() {
  if (const int error = refuse_inherited()) return error;
  const std::lock_guard lock(commit_mutex_);
  if (left_ >= 0) return VELLUM_REAL(fsync)(left_) == 0 ? 0 : errno;
  return commit_with(lmdb::MetaPages(data_, size_bytes()));
}

// REQUIRES: commit_mutex_. `meta`: read before the commit, so that a later one does not count as
// committed.
int LiveFile::commit_with(const lmdb::MetaPages& meta) {
  if (!closed_) report_other_writers();
  const std::uint64_t since = written_since_;
  set_written_since(0);  // writes during the commit may not be in it
  unkept_ = false;
  const int error = reported(path_, [&] {
    drop_tail();
    commit_or_keep();
    committed_meta_ = meta;
  });
  if (error != 0 && since != 0) set_written_since(since), unkept_ = true;
  if (error == 0) kept_since_ = {};
  note_own_change();
  return error;
}

// The bytes are also the next commit's: a later close(2) writes only those that follow.
bool LiveFile::keep() {
  constexpr std::chrono::seconds kMaxAge(2);
  if (inherited() || mapped_writable_) return false;
  const std::lock_guard commits(commit_mutex_);
  const std::unique_lock alone(size_mutex_);
  if (left_ >= 0) return false;
  report_other_writers();
  const auto now = std::chrono::steady_clock::now();
  if (kept_since_ != decltype(kept_since_)() && now - kept_since_ > kMaxAge) return false;
  {
    const std::lock_guard written(written_mutex_);
    if (mapped_writable_ || anywhere_ || told_of_other_writers_) return false;
    if (!unkept_) return written_since_ != 0;
    const ReentrancyGuard inside;
    bool done = false;
    const int error =
        base::error_of([&] { done = region::RegionAccess::write_tail(region_, lowest_written_); },
                       [](const char*) {});  // the commit reports it
    if (error != 0 || !done) return false;
    lowest_written_ = UINT64_MAX;
    unkept_ = false;
  }
  if (kept_since_ == decltype(kept_since_)()) kept_since_ = now;
  note_own_change();
  return true;
}

bool LiveFile::is_changed_by_others(int fd) {
  const std::uint64_t own_bytes = size_bytes();
  struct stat status;
  if (VELLUM_REAL(fstat)(fd, &status) != 0) return true;
  const std::lock_guard lock(modified_mutex_);
  return static_cast<std::uint64_t>(status.st_size) != own_bytes ||
         base::nanoseconds_of(status.st_mtim) != modified_ns_;
}

bool LiveFile::is_asked_for() {
  const std::lock_guard commits(commit_mutex_);
  bool asked = false;
  const ReentrancyGuard inside;
  if (left_ < 0 && !inherited())
    base::error_of([&] { asked = region::RegionAccess::is_asked_for(region_); },
                   [](const char*) {});
  return asked;
}

// LMDB flushes a transaction's pages, and then the meta page that makes it valid; here both are one
// commit (lmdb.h; mdb_env_sync(), mdb_env_write_meta()). Only LMDB itself is known to do so: writes
// of other programs to an LMDB file are committed at once.
int LiveFile::flush() {
  if (const int error = refuse_inherited()) return error;
  const std::lock_guard lock(commit_mutex_);
  if (left_ >= 0) return VELLUM_REAL(fsync)(left_) == 0 ? 0 : errno;
  const lmdb::MetaPages meta(data_, size_bytes());
  const bool waits = meta.is_lmdb() && meta == committed_meta_ && lmdb_lock_.is_open(path_);
  return waits ? 0 : commit_with(meta);
}

int LiveFile::commit_soon() {
  if (const int error = refuse_inherited()) return error;
  const std::lock_guard lock(commit_mutex_);
  if (left_ >= 0) return 0;
  report_other_writers();
  {
    const std::lock_guard known(modified_mutex_);
    modified_ns_ = 0;  // the file is updated later
  }
  return reported(path_, [&] {
    drop_tail();
    std::ignore = region_.commit_async();
  });
}

// Bytes after the end of a file, in its last page, are not part of it (mmap(2), NOTES).
void LiveFile::drop_tail() {
  if (!mapped_writable_) return;
  const std::shared_lock lock(size_mutex_);
  const std::uint64_t size = region_.file_bytes();
  const std::uint64_t left = (kPageBytes - size % kPageBytes) % kPageBytes;
  if (left != 0) region_.zero({size, left});
}

// REQUIRES: commit_mutex_. Every Nth commit is a snapshot. If the name already exists, from an
// earlier run that was rolled back, this is a plain commit.
void LiveFile::commit_or_keep() {
  const std::uint64_t next = region_.sequence() + 1;
  if (snapshot_every_ == 0 || next - last_kept_ < snapshot_every_) {
    commit_written();
    return;
  }
  try {
    region_.snapshot(snapshot_name(branch_, next));
  } catch (const Error& error) {
    if (error.code() != Errc::already_exists) throw;
    commit_written();
  }
  last_kept_ = next;
}

}  // namespace vellum::preload
