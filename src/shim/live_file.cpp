#include "shim/live_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>

#include "base/error_number.hpp"
#include "base/fork_count.hpp"
#include "format/types.hpp"
#include "shim/real.hpp"

namespace vellum::shim {
namespace {

using format::kPageBytes;

// Address space, which costs nothing: a program may map far more than the file has, and the file
// grows into it.
constexpr std::uint64_t kLeastCapacityBytes = 1ULL << 40;
// A file that a program appends to grows by so much at once, until a commit says where it ends.
constexpr std::uint64_t kLeastRoomBytes = 1u << 20, kMostRoomBytes = 16u << 20;

Region open(const Config& config, const Target& target) {
  RegionOptions options;
  options.image_path = target.path;
  options.capacity_bytes = kLeastCapacityBytes;
  Store store = Store::open(config.store);
  if (store.contains(target.branch)) {
    Region region = store.open_region(target.branch, options);
    region.commit("as the file was found");
    return region;
  }
  struct stat status;
  const bool empty = VELLUM_REAL(stat)(target.path.c_str(), &status) != 0 || status.st_size == 0;
  Region region = store.create_region(target.branch, 1, options);
  // Of a new file it is the emptiness that a kill before the first commit is to leave.
  if (empty) region.resize_file(0);
  region.commit("as it was before the first run");
  return region;
}

// 0: not known.
std::int64_t modified_ns(const std::string& path) {
  struct stat status;
  if (VELLUM_REAL(stat)(path.c_str(), &status) != 0) return 0;
  return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

thread_local int Inside::depth = 0;

int reported(const std::string& path, const std::function<void()>& body) noexcept {
  const Inside inside;
  return base::error_of(body, [&](const char* what) {
    std::fprintf(stderr, "vellum run: %s: %s\n", path.c_str(), what);
  });
}

LiveFile::LiveFile(const Config& config, const Target& target)
    : path_(target.path),
      branch_(target.branch),
      snapshot_every_(config.snapshot_every),
      born_(base::fork_count()),
      region_(open(config, target)),
      data_(static_cast<std::byte*>(region_.data())),
      capacity_bytes_(region_.capacity_bytes()),
      last_kept_(region_.sequence()),
      committed_meta_(data_, region_.file_bytes()) {
  // A child of fork() may read what it has mapped: its copy of it.
  madvise(data_, capacity_bytes_, MADV_DOFORK);
  note_own_change();
}

LiveFile::~LiveFile() {
  if (!inherited()) return;
  [[maybe_unused]] auto* left = new (std::nothrow) Region(std::move(region_));
  VELLUM_REAL(munmap)(data_, capacity_bytes_);
}

bool LiveFile::inherited() const noexcept { return base::fork_count() != born_; }

int LiveFile::refuse_inherited() const {
  if (!inherited()) return 0;
  std::fprintf(stderr,
               "vellum run: %s: was open before fork(), and is the parent's to write: one process "
               "at a time\n",
               path_.c_str());
  return ENOTSUP;
}

// A program outside has its own memory of the file. Nothing keeps it from writing, but it shows.
// REQUIRES: commit_mutex_.
void LiveFile::tell_of_other_writers() {
  const std::lock_guard lock(modified_mutex_);
  const std::int64_t now_ns = modified_ns(path_);
  const bool known = modified_ns_ != 0 && now_ns != 0;
  if (told_of_other_writers_ || !known || now_ns == modified_ns_) return;
  told_of_other_writers_ = true;
  std::fprintf(stderr,
               "vellum run: %s: somebody outside of this program has changed it meanwhile: their "
               "changes may be lost, or mixed with this program's\n",
               path_.c_str());
}

void LiveFile::note_own_change() {
  const std::lock_guard lock(modified_mutex_);
  modified_ns_ = modified_ns(path_);
}

std::uint64_t LiveFile::size_bytes() const {
  const std::shared_lock lock(size_mutex_);
  return region_.file_bytes();
}

ssize_t LiveFile::read_at(void* to, std::size_t length_bytes, std::uint64_t offset_bytes) const {
  const std::shared_lock lock(size_mutex_);
  const std::uint64_t size = region_.file_bytes();
  if (offset_bytes >= size) return 0;
  const std::size_t count = std::min<std::uint64_t>(length_bytes, size - offset_bytes);
  std::memcpy(to, data_ + offset_bytes, count);
  return static_cast<ssize_t>(count);
}

ssize_t LiveFile::write_at(const void* from, std::size_t length_bytes, std::uint64_t offset_bytes,
                           bool append) {
  if (const int error = refuse_inherited()) return errno = error, -1;
  if (length_bytes == 0) return 0;
  std::shared_lock shared(size_mutex_);
  std::unique_lock<std::shared_mutex> alone;
  if (append || offset_bytes + length_bytes > region_.file_bytes()) {
    shared.unlock();
    alone = std::unique_lock(size_mutex_);
    if (append) offset_bytes = region_.file_bytes();
    // Another writer may have been here in between.
    const std::uint64_t end = std::max(offset_bytes + length_bytes, region_.file_bytes());
    if (const int error = set_size(end)) return errno = error, -1;
  }
  std::memcpy(data_ + offset_bytes, from, length_bytes);
  note_written(offset_bytes, length_bytes);
  return static_cast<ssize_t>(length_bytes);
}

// After it has been: a commit in between must not take the note alone.
void LiveFile::note_written(std::uint64_t offset_bytes, std::size_t length_bytes) {
  constexpr std::size_t kMostRanges = 64u << 10;
  if (mapped_writable_) return;
  const std::lock_guard lock(written_mutex_);
  if (!written_.empty() &&
      written_.back().offset_bytes + written_.back().length_bytes == offset_bytes) {
    written_.back().length_bytes += length_bytes;
  } else if (written_.size() < kMostRanges) {
    written_.push_back({offset_bytes, length_bytes});
  } else {
    anywhere_ = true;
  }
}

// What has been committed is read from the kernel's cache again, as of any file: a copy less in
// memory, and where the kernel has large folios, reads that are faster.
void LiveFile::drop_copies(const std::vector<ByteRange>& committed) {
  const std::unique_lock alone(size_mutex_);  // nobody writes
  const std::lock_guard lock(written_mutex_);
  if (!mapped_writable_ && !anywhere_ && written_.empty()) region_.drop_copies(committed);
}

void LiveFile::note_mapped_writable() {
  const std::unique_lock alone(size_mutex_);  // not beside drop_copies()
  mapped_writable_ = true;
}

CommitReport LiveFile::commit_written() {
  std::vector<ByteRange> written;
  bool anywhere = false;
  {
    const std::lock_guard lock(written_mutex_);
    written.swap(written_);
    std::swap(anywhere, anywhere_);
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

// REQUIRES: size_mutex_. What a shorter file loses becomes zero, wherever it was.
int LiveFile::set_size(std::uint64_t size_bytes) {
  if (size_bytes == region_.file_bytes()) return 0;
  if (size_bytes > capacity_bytes_) return EFBIG;
  if (size_bytes < region_.file_bytes()) {
    const std::lock_guard lock(written_mutex_);
    anywhere_ = true;
  }
  const std::uint64_t room =
      std::clamp<std::uint64_t>(size_bytes / 8, kLeastRoomBytes, kMostRoomBytes);
  const std::lock_guard lock(modified_mutex_);
  const int error = reported(path_, [&] { region_.resize_file(size_bytes, room); });
  if (modified_ns_ != 0) modified_ns_ = modified_ns(path_);
  return error;
}

int LiveFile::resize(std::uint64_t size_bytes) {
  if (const int error = refuse_inherited()) return error;
  const std::unique_lock lock(size_mutex_);
  return set_size(size_bytes);
}

int LiveFile::commit() {
  if (const int error = refuse_inherited()) return error;
  const std::lock_guard lock(commit_mutex_);
  return commit_with(LmdbMeta(data_, size_bytes()));
}

// REQUIRES: commit_mutex_. `meta`: as it was before, so that a later one is not taken for
// committed.
int LiveFile::commit_with(const LmdbMeta& meta) {
  tell_of_other_writers();
  const int error = reported(path_, [&] {
    drop_tail();
    commit_or_keep();
    committed_meta_ = meta;
  });
  note_own_change();
  return error;
}

// LMDB flushes a transaction's pages and then the meta page that makes it count, which is one
// commit here (lmdb.h; mdb_env_sync(), mdb_env_write_meta()).
int LiveFile::flush() {
  if (const int error = refuse_inherited()) return error;
  const std::lock_guard lock(commit_mutex_);
  const LmdbMeta meta(data_, size_bytes());
  return meta.is_lmdb() && meta == committed_meta_ ? 0 : commit_with(meta);
}

int LiveFile::commit_soon() {
  if (const int error = refuse_inherited()) return error;
  const std::lock_guard lock(commit_mutex_);
  tell_of_other_writers();
  {
    const std::lock_guard known(modified_mutex_);
    modified_ns_ = 0;  // the file follows later
  }
  return reported(path_, [&] {
    drop_tail();
    region_.commit_async();
  });
}

// What is stored behind the end of a file, in its last page, is nobody's (mmap(2), NOTES).
void LiveFile::drop_tail() {
  if (!mapped_writable_) return;
  const std::shared_lock lock(size_mutex_);
  const std::uint64_t size = region_.file_bytes();
  const std::uint64_t left = (kPageBytes - size % kPageBytes) % kPageBytes;
  if (left != 0) region_.clear(data_ + size, left);
}

// REQUIRES: commit_mutex_. Every Nth commit is a snapshot. A name that is taken, by a run before
// that was rolled back, is no reason not to commit.
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

}  // namespace vellum::shim
