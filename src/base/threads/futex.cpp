#include "base/threads/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <ctime>

#include "base/threads/handler_wait.hpp"

namespace vellum::base {
namespace {

// The result is ignored, since a waiter reads the word again.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* most, Waiters waiters) noexcept {
  static_assert(sizeof(word) == sizeof(std::uint32_t), "the kernel reads the word itself");
  const int saved_errno = errno;
  if (waiters == Waiters::of_this_process) operation |= FUTEX_PRIVATE_FLAG;
  ::syscall(SYS_futex, &word, operation, value, most, nullptr, 0);
  errno = saved_errno;
}

}  // namespace

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                std::optional<std::chrono::milliseconds> most, Waiters waiters) noexcept {
  assert(!most.has_value() || most->count() >= 0);
  if (HandlerWait::is_in_handler())
    most = std::min(most.value_or(HandlerWait::kStep), HandlerWait::kStep);
  if (!most) return futex(word, FUTEX_WAIT, value, nullptr, waiters);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*most);
  const timespec time{static_cast<std::time_t>(seconds.count()),
                      static_cast<long>(std::chrono::nanoseconds(*most - seconds).count())};
  futex(word, FUTEX_WAIT, value, &time, waiters);
  HandlerWait::end_if_requested();
}

void futex_wake(std::atomic<std::uint32_t>& word, int threads, Waiters waiters) noexcept {
  assert(threads >= 1);
  futex(word, FUTEX_WAKE, static_cast<std::uint32_t>(threads), nullptr, waiters);
}

}  // namespace vellum::base
