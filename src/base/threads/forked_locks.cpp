#include "base/threads/forked_locks.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cassert>
#include <charconv>
#include <new>
#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::base {

struct ForkedLocks::Entry {
  std::atomic<int> fd{-1};  // -1: free
};

namespace {

// The list only grows and has no lock: another thread may change it during fork(2). A used entry
// has an open file: it is set before the file is locked, and released before the file is closed.
struct Block {
  std::array<ForkedLocks::Entry, 64> entries;
  std::atomic<Block*> next{nullptr};
};

Block first;

// Uses direct system calls: `vellum run` replaces the C library's functions, and allocates there.
void reopen(int fd) noexcept {
  char path[32] = "/proc/self/fd/";
  constexpr std::size_t kPrefix = 14;
  *std::to_chars(path + kPrefix, path + sizeof path - 1, fd).ptr = '\0';
  const long own = ::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (own < 0) return;  // already closed, or no descriptor available: this child keeps the lock
  ::syscall(SYS_dup3, own, fd, O_CLOEXEC);
  ::syscall(SYS_close, own);
}

void reopen_all() noexcept {
  const int saved_errno = errno;
  for (Block* block = &first; block != nullptr; block = block->next.load()) {
    for (ForkedLocks::Entry& entry : block->entries) {
      const int fd = entry.fd.load();
      if (fd >= 0) reopen(fd);
    }
  }
  errno = saved_errno;
}

ForkedLocks::Entry* take_entry(int fd) {
  [[maybe_unused]] static const int registered = ::pthread_atfork(nullptr, nullptr, reopen_all);
  for (Block* block = &first;;) {
    for (ForkedLocks::Entry& entry : block->entries) {
      int free = -1;
      if (entry.fd.compare_exchange_strong(free, fd)) return &entry;
    }
    Block* next = block->next.load();
    if (next == nullptr) {
      auto* const fresh = new (std::nothrow) Block;
      if (fresh == nullptr) fail(Errc::out_of_memory, "no memory for another lock");
      if (block->next.compare_exchange_strong(next, fresh)) {
        next = fresh;
      } else {
        delete fresh;
      }
    }
    block = next;
  }
}

}  // namespace

void ForkedLocks::keep_from_children(int fd) {
  assert(fd >= 0);
  if (entry_ == nullptr) entry_ = take_entry(fd);
  assert(entry_->fd.load() == fd);
}

void ForkedLocks::forget() noexcept {
  if (entry_ != nullptr) entry_->fd.store(-1);
  entry_ = nullptr;
}

}  // namespace vellum::base
