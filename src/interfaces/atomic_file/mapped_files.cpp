#include "interfaces/atomic_file/mapped_files.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vellum/cards.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error_number.hpp"
#include "base/fail.hpp"
#include "base/files/real_path.hpp"
#include "base/threads/fork_count.hpp"
#include "format/wire/types.hpp"
#include "interfaces/atomic_file/journal_file.hpp"
#include "interfaces/mapped_io/descriptor_io.hpp"
#include "interfaces/mapped_io/map_requests.hpp"

namespace vellum::atomic_file {
namespace {

using format::kPageBytes;

// Runs `body` and reports an exception in one line.
template <typename Body>
int reported(const Body& body) noexcept {
  return base::error_of(body, [](const char* what) { std::fprintf(stderr, "vellum: %s\n", what); });
}

void require_room(const AtomicFile& file, std::uint64_t offset_bytes, std::size_t length_bytes) {
  const std::uint64_t capacity = file.capacity_bytes();
  if (offset_bytes > capacity || length_bytes > capacity - offset_bytes)
    fail(Errc::out_of_memory,
         "{}: a range that ends at byte {} does not fit in the memory of the file", file.path(),
         offset_bytes + length_bytes);
}

// 0, or the errno value why this cannot be mapped.
int check_request(std::size_t length_bytes, int flags, int fd, off_t offset_bytes, bool mapped) {
  if (length_bytes == 0 || offset_bytes < 0 || offset_bytes % static_cast<off_t>(kPageBytes) != 0 ||
      (flags & MAP_TYPE) == MAP_PRIVATE || (flags & MAP_ANONYMOUS) != 0)
    return EINVAL;
  if (const int refused = mapped_io::refuse_map_flags(flags)) return refused;
  struct stat status;
  if (fstat(fd, &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return ENODEV;
  if (!mapped && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR) return EACCES;
  if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == 0) return 0;
  std::fprintf(stderr, "vellum: %s: cannot be mapped at an address of the program's choice\n",
               base::path_of(fd).c_str());
  return ENOTSUP;
}

}  // namespace

MappedFiles& MappedFiles::instance() {
  static MappedFiles* const files = [] {
    static MappedFiles* made = new MappedFiles;
    std::atexit([] { made->close_all(); });
    // In a child the locks are free, and the entries unchanged; they are its parent's.
    const auto unlock = [] {
      made->mutex_.unlock();
      mapped_io::unlock_offsets();
    };
    pthread_atfork(
        [] {
          mapped_io::lock_offsets();
          made->mutex_.lock();
        },
        unlock, unlock);
    return made;
  }();
  return *files;
}

// The kernel also writes shared mappings to their files after exit(3).
void MappedFiles::close_all() noexcept {
  const std::lock_guard guard(mutex_);
  for (auto& [inode, entry] : entries_) {
    if (entry.owner != base::fork_count()) continue;
    commit(entry);
    reported([&] { entry.file.close_but_leave_mapped(); });
  }
  entries_.clear();
  note_entries();
}

namespace {

std::uint64_t filter_bit(std::uint64_t device, std::uint64_t inode) noexcept {
  return 1ULL << ((device ^ inode) * 0x9e3779b97f4a7c15 >> 58);
}

}  // namespace

void MappedFiles::note_entries() {
  std::uint64_t filter = 0;
  std::uintptr_t lowest = UINTPTR_MAX, highest = 0;
  for (const auto& [inode, entry] : entries_) {
    filter |= filter_bit(inode.first, inode.second);
    const auto data = reinterpret_cast<std::uintptr_t>(entry.file.data());
    lowest = std::min(lowest, data);
    highest = std::max(highest, data + entry.file.capacity_bytes());
  }
  inode_filter_ = filter;
  lowest_ = lowest;
  highest_ = highest;
}

MappedFiles::Entries::iterator MappedFiles::find(const void* address) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const auto& item) { return item.second.mappings.contains(address); });
}

MappedFiles::Entries::iterator MappedFiles::find(int fd) {
  struct stat status;
  if (entries_.empty() || fstat(fd, &status) != 0) return entries_.end();
  return entries_.find({status.st_dev, status.st_ino});
}

int MappedFiles::map(std::size_t length_bytes, int flags, int fd, off_t offset_bytes,
                     Tracker tracker, void*& address) {
  const std::lock_guard guard(mutex_);
  auto entry = find(fd);
  const bool mapped = entry != entries_.end();
  if (const int wrong = check_request(length_bytes, flags, fd, offset_bytes, mapped)) return wrong;
  return reported([&] {
    if (!mapped) {
      struct stat status;
      fstat(fd, &status);
      AtomicFileOptions options;
      options.tracker = tracker;
      AtomicFile file = AtomicFile::open(base::path_of(fd), options);
      require_room(file, static_cast<std::uint64_t>(offset_bytes), length_bytes);
      Entry fresh{std::move(file), base::fork_count(), {}};
      entry = entries_.emplace(Inode{status.st_dev, status.st_ino}, std::move(fresh)).first;
      note_entries();
    }
    Entry& it = entry->second;
    const auto offset = static_cast<std::uint64_t>(offset_bytes);
    require_room(it.file, offset, length_bytes);
    auto* begin = static_cast<std::byte*>(it.file.data()) + offset;
    it.mappings.add(begin, length_bytes);
    address = begin;
  });
}

bool MappedFiles::contains(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at < lowest_ || at >= highest_) return false;
  const std::lock_guard guard(mutex_);
  return find(address) != entries_.end();
}

int MappedFiles::commit(Entry& entry) {
  if (entry.owner != base::fork_count()) {
    std::fprintf(stderr, "vellum: %s: was mapped before fork(): only the parent may write it\n",
                 entry.file.path().c_str());
    return ENOTSUP;
  }
  return reported([&] { entry.file.commit(); });
}

int MappedFiles::sync(const void* address) {
  const std::lock_guard guard(mutex_);
  const auto entry = find(address);
  return entry == entries_.end() ? EINVAL : commit(entry->second);
}

int MappedFiles::unmap(void* address, std::size_t length_bytes) {
  const std::lock_guard guard(mutex_);
  const auto entry = find(address);
  if (entry == entries_.end() || length_bytes == 0) return EINVAL;
  mapped_io::Mappings left = entry->second.mappings;
  left.remove(static_cast<std::byte*>(address), length_bytes);
  if (!left.empty()) {
    entry->second.mappings = std::move(left);
    return 0;
  }
  return close(entry);
}

// A file that cannot be committed stays mapped: no store is lost.
int MappedFiles::close(Entries::iterator entry) {
  if (entry->second.owner == base::fork_count()) {
    if (const int error = commit(entry->second)) return error;
    if (const int error = reported([&] { entry->second.file.checkpoint(); })) return error;
  }
  const int error = reported([&] { entry->second.file.close(); });
  entries_.erase(entry);
  note_entries();
  return error;
}

int MappedFiles::remap(void* address, std::size_t old_bytes, std::size_t new_bytes) {
  const std::lock_guard guard(mutex_);
  const auto entry = find(address);
  if (entry == entries_.end() || new_bytes == 0) return EINVAL;
  auto* begin = static_cast<std::byte*>(address);
  auto* data = static_cast<std::byte*>(entry->second.file.data());
  if (static_cast<std::uint64_t>(begin - data) + new_bytes > entry->second.file.capacity_bytes())
    return ENOMEM;
  return entry->second.mappings.resize(begin, old_bytes, new_bytes) ? 0 : EINVAL;
}

bool MappedFiles::mapped(int fd) {
  struct stat status;
  const std::uint64_t filter = inode_filter_;
  if (filter == 0 || fstat(fd, &status) != 0) return false;
  if ((filter & filter_bit(status.st_dev, status.st_ino)) == 0) return false;
  const std::lock_guard guard(mutex_);
  return find(fd) != entries_.end();
}

int MappedFiles::sync_file(int fd) {
  const std::lock_guard guard(mutex_);
  const auto entry = find(fd);
  return entry == entries_.end() ? EBADF : commit(entry->second);
}

void MappedFiles::sync_all() {
  const std::lock_guard guard(mutex_);
  for (auto& [inode, entry] : entries_)
    if (entry.owner == base::fork_count()) commit(entry);
}

int MappedFiles::truncate(int fd, off_t size_bytes) {
  const std::lock_guard guard(mutex_);
  const auto entry = find(fd);
  if (entry == entries_.end()) return EBADF;
  if (size_bytes < 0) return EINVAL;
  if (entry->second.owner != base::fork_count()) return ENOTSUP;
  return reported([&] { entry->second.file.resize(static_cast<std::uint64_t>(size_bytes)); });
}

ssize_t MappedFiles::read_at(int fd, void* to, std::size_t length_bytes,
                             std::uint64_t offset_bytes) {
  const std::lock_guard guard(mutex_);
  const auto entry = find(fd);
  if (entry == entries_.end()) {
    errno = EINVAL;
    return -1;
  }
  const AtomicFile& file = entry->second.file;
  if (offset_bytes >= file.size_bytes()) return 0;
  const std::size_t count = std::min<std::uint64_t>(length_bytes, file.size_bytes() - offset_bytes);
  std::memcpy(to, static_cast<const std::byte*>(file.data()) + offset_bytes, count);
  return static_cast<ssize_t>(count);
}

ssize_t MappedFiles::write_at(int fd, const void* from, std::size_t length_bytes,
                              std::uint64_t& offset_bytes, bool append) {
  const std::lock_guard guard(mutex_);
  const auto entry = find(fd);
  if (entry == entries_.end() || entry->second.owner != base::fork_count()) {
    errno = EINVAL;
    return -1;
  }
  if (length_bytes == 0) return 0;
  AtomicFile& file = entry->second.file;
  if (append) offset_bytes = file.size_bytes();
  const std::uint64_t end = offset_bytes + length_bytes;
  const int error = reported([&] {
    require_room(file, offset_bytes, length_bytes);
    if (end > file.size_bytes()) file.resize(end);
    std::byte* to = static_cast<std::byte*>(file.data()) + offset_bytes;
    std::memcpy(to, from, length_bytes);
    vellum_mark(to, length_bytes);
  });
  if (error == 0) return static_cast<ssize_t>(length_bytes);
  errno = error;
  return -1;
}

void MappedFiles::recover(const std::string& path) {
  if (access(journal_path(path).c_str(), F_OK) != 0) return;
  try {
    AtomicFile::recover(path);
  } catch (const Error& error) {
    if (error.code() != Errc::busy) std::fprintf(stderr, "vellum: %s\n", error.what());
  }
}

}  // namespace vellum::atomic_file
