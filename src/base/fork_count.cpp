#include "base/fork_count.hpp"

#include <pthread.h>

#include <atomic>

namespace vellum::base {
namespace {

std::atomic<std::uint32_t> forks{0};

}  // namespace

std::uint32_t fork_count() noexcept {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

}  // namespace vellum::base
