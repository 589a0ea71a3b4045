#include "memory/shared/shared_chunks.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/bytes/checksum.hpp"
#include "base/fail.hpp"
#include "base/threads/futex.hpp"

#ifndef MADV_POPULATE_READ  // Debian 12's glibc lacks it
#define MADV_POPULATE_READ 22
#endif

namespace vellum::region {
namespace {

std::uint32_t sum_of(std::span<const std::byte> content, std::size_t index) noexcept {
  return static_cast<std::uint32_t>(base::checksum64(content, index));
}

}  // namespace

SharedChunks::SharedChunks(std::unique_ptr<SharedFile> file)
    : file_(std::move(file)), checked_(file_->layout().chunks()) {
  const std::uint64_t bytes = file_->layout().file_bytes();
  void* const map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                           file_->descriptor(), 0);
  if (map == MAP_FAILED) {
    fail(Errc::out_of_memory, "cannot map {} bytes that readers share: {}", bytes,
         std::strerror(errno));
  }
  map_ = static_cast<std::byte*>(map);
  ::madvise(map_, bytes, MADV_DONTFORK);
  ::madvise(map_, bytes, MADV_DONTDUMP);
}

SharedChunks::~SharedChunks() { ::munmap(map_, file_->layout().file_bytes()); }

std::span<std::byte> SharedChunks::content(std::size_t index, std::size_t count) const noexcept {
  const std::size_t chunk_bytes = file_->layout().chunk_bytes;
  return {map_ + index * chunk_bytes, count * chunk_bytes};
}

// The pages exist while they are checked, and again when they are mapped. If the file was truncated
// meanwhile, populating them fails, and an access would be a SIGBUS.
std::size_t SharedChunks::check(std::size_t index, std::size_t count) noexcept {
  assert(count != 0 && is_full(index) && is_full(index + count - 1));
  const std::span<std::byte> all = content(index, count);
  const int saved_errno = errno;
  const bool populated =
      ::madvise(all.data(), all.size(), MADV_POPULATE_READ) == 0 || errno == EINVAL;
  std::size_t right = 0;
  for (; populated && right < count; ++right) {
    const std::size_t i = index + right;
    if (checked(i).load(std::memory_order_relaxed)) continue;
    if (sum_of(content(i, 1), i) != word(i).sum.load(std::memory_order_relaxed)) break;
    checked(i).store(true, std::memory_order_relaxed);
  }
  // The region's own mapping suffices: the pages would count twice.
  ::madvise(all.data(), all.size(), MADV_DONTNEED);
  errno = saved_errno;
  return right;
}

// By write(2): a full file system is an error, not a SIGBUS.
int SharedChunks::put(std::size_t index, std::span<const std::byte> content) noexcept {
  assert(content.size() == file_->layout().chunk_bytes);
  const std::uint32_t sum = sum_of(content, index);
  auto offset = static_cast<off_t>(index * file_->layout().chunk_bytes);
  while (!content.empty()) {
    const long n = ::syscall(SYS_pwrite64, descriptor(), content.data(), content.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    content = content.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
  checked(index).store(true, std::memory_order_relaxed);
  word(index).sum.store(sum, std::memory_order_relaxed);
  word(index).state.store(Word::kFull, std::memory_order_release);
  base::futex_wake(word(index).state, INT_MAX, base::Waiters::of_all_processes);
  return 0;
}

void SharedChunks::wait(std::size_t index, std::chrono::milliseconds most) noexcept {
  base::futex_wait(word(index).state, 0, most, base::Waiters::of_all_processes);
}

// Two threads of one reader may both get the lock: locks of one open file do not exclude each
// other.
bool SharedChunks::is_loader() noexcept {
  if (loader_.load(std::memory_order_relaxed)) return true;
  if (!file_->try_lock(file_->loader_byte(), 1)) return false;
  loader_.store(true, std::memory_order_relaxed);
  return true;
}

void SharedChunks::resign() noexcept {
  if (loader_.exchange(false, std::memory_order_relaxed)) file_->unlock(file_->loader_byte(), 1);
}

}  // namespace vellum::region
