#include "memory/copies/memfd_backing.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/size_limit.hpp"
#include "memory/kernel/kernel.hpp"

namespace vellum::region {
namespace {

// A userfaultfd for add_file_pages(), or -1. Holes of the alias are never accessed, so it raises no
// signal.
int open_for_adding(std::byte* alias, std::size_t bytes) noexcept {
  const int uffd = open_userfaultfd(Tracking::none);
  if (uffd < 0 || register_range(uffd, alias, bytes, false) == 0) return uffd;
  close(uffd);
  return -1;
}

[[noreturn]] void refuse(const char* what, std::size_t bytes, int error) {
  if (error == EFBIG) {
    fail(
        Errc::out_of_memory,
        "cannot reserve {} bytes for a region: this process may make no file so large (ulimit -f), "
        "and pages are in one in memory; capacity_bytes sets this size",
        bytes);
  }
  fail(Errc::out_of_memory,
       "cannot reserve {} bytes for a region ({}): {}; capacity_bytes sets this size", bytes, what,
       std::strerror(error));
}

}  // namespace

Memfd::Memfd(std::size_t capacity_bytes) : descriptor(memfd_create("vellum", MFD_CLOEXEC)) {
  if (descriptor < 0) refuse("memfd_create", capacity_bytes, errno);
  if (!base::may_have_size(capacity_bytes) ||
      ftruncate(descriptor, static_cast<off_t>(capacity_bytes)) != 0) {
    const int error = errno;
    close(descriptor);
    refuse("ftruncate", capacity_bytes, error);
  }
}

Memfd::~Memfd() { close(descriptor); }

MemfdBacking::MemfdBacking(std::size_t capacity_bytes, std::shared_ptr<Pager> pager)
    : Memfd(capacity_bytes),
      Backing(capacity_bytes, descriptor, MAP_SHARED),
      pager_(std::move(pager)),
      uffd_(open_for_adding(base_copy(0), capacity_bytes)) {}

MemfdBacking::~MemfdBacking() {
  pager_->add_pages(-base_copy_pages_.load());
  if (uffd_ >= 0) close(uffd_);
}

void MemfdBacking::count(std::int64_t pages) noexcept {
  base_copy_pages_.fetch_add(pages, std::memory_order_relaxed);
  pager_->add_pages(pages);
}

void MemfdBacking::punch(format::PageNumber first, std::size_t count_pages) noexcept {
  fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(first * kPageBytes), static_cast<off_t>(count_pages * kPageBytes));
}

void MemfdBacking::drop_base_copies(format::PageNumber first, std::size_t count_pages) noexcept {
  forget_base_copies(first, count_pages);
  punch(first, count_pages);
}

std::int64_t MemfdBacking::file_pages() const noexcept {
  struct stat status{};
  if (fstat(descriptor, &status) != 0) return base_copy_pages();
  return static_cast<std::int64_t>(status.st_blocks) * 512 / static_cast<std::int64_t>(kPageBytes);
}

int MemfdBacking::read(format::PageNumber first, std::span<std::byte> out) const noexcept {
  auto offset = static_cast<off_t>(first * kPageBytes);
  while (!out.empty()) {
    const long n = syscall(SYS_pread64, descriptor, out.data(), out.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    out = out.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
  return 0;
}

int MemfdBacking::write(format::PageNumber first, std::span<const std::byte> bytes) noexcept {
  assert(bytes.size() % kPageBytes == 0);
  const bool would_wait = writers_.fetch_add(1, std::memory_order_relaxed) != 0;
  const std::size_t added =
      would_wait && uffd_ >= 0 ? add_file_pages(uffd_, base_copy(first), bytes) : 0;
  // Pages that the file has are overwritten.
  const int error = write_file(first + added / kPageBytes, bytes.subspan(added));
  writers_.fetch_sub(1, std::memory_order_relaxed);
  return error;
}

void MemfdBacking::unmap_alias(format::PageNumber first, std::size_t count_pages) const noexcept {
  madvise(base_copy(first), count_pages * kPageBytes, MADV_DONTNEED);
}

int MemfdBacking::write_file(format::PageNumber first, std::span<const std::byte> bytes) noexcept {
  auto offset = static_cast<off_t>(first * kPageBytes);
  while (!bytes.empty()) {
    // The bare system call: `bytes` may be region memory that other threads are writing, which is
    // allowed here and would be reported by a sanitizer's wrapper of pwrite.
    const long n = syscall(SYS_pwrite64, descriptor, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
  return 0;
}

}  // namespace vellum::region
