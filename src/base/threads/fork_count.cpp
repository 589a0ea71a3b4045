#include "base/threads/fork_count.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <new>

namespace vellum::base {
namespace {

using Number = std::atomic<std::uint32_t>;

constexpr std::size_t kNumberBytes = 4096;  // a page: the unit of advice to the kernel

// 0 in a process that has not called fork_count() yet: the kernel gives a child a zero page. Before
// Linux 4.14, a handler of the C library's fork(2) sets it to 0.
Number* make_number() noexcept {
  void* const page =
      mmap(nullptr, kNumberBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED && madvise(page, kNumberBytes, MADV_WIPEONFORK) == 0)
    return new (page) Number(0);
  static Number instead{0};
  pthread_atfork(nullptr, nullptr, [] { instead = 0; });
  return &instead;
}

Number processes{0};  // a child's copy continues from its parent's value

}  // namespace

std::uint32_t fork_count() noexcept {
  static Number* const number = make_number();
  std::uint32_t found = number->load(std::memory_order_relaxed);
  if (found != 0) return found;
  const std::uint32_t fresh = ++processes;
  return number->compare_exchange_strong(found, fresh) ? fresh : found;
}

}  // namespace vellum::base
