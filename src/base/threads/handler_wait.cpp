#include "base/threads/handler_wait.hpp"

#include <atomic>
#include <cassert>

namespace vellum::base {
namespace {

using BlockedBefore = std::atomic<const sigset_t*>;

std::atomic<const std::byte*> g_stacks{nullptr};
std::size_t g_bytes_each = 0, g_count = 0;  // set before g_stacks
BlockedBefore g_blocked_before[HandlerWait::kMaxStacks];

// Of the caller's stack; null: it is no handler's stack.
[[gnu::noinline]] BlockedBefore* of_this_stack() noexcept {
  const std::byte* const begin = g_stacks.load(std::memory_order_acquire);
  const auto* const here = static_cast<const std::byte*>(__builtin_frame_address(0));
  if (begin == nullptr || here < begin || here >= begin + g_count * g_bytes_each) return nullptr;
  return &g_blocked_before[static_cast<std::size_t>(here - begin) / g_bytes_each];
}

const sigset_t* blocked_before() noexcept {
  const BlockedBefore* const mine = of_this_stack();
  return mine == nullptr ? nullptr : mine->load(std::memory_order_relaxed);
}

}  // namespace

void HandlerWait::set_stacks(const std::byte* begin, std::size_t bytes_each,
                             std::size_t count) noexcept {
  assert(count <= kMaxStacks && begin != nullptr && bytes_each != 0);
  g_bytes_each = bytes_each;
  g_count = count;
  g_stacks.store(begin, std::memory_order_release);
}

HandlerWait::HandlerWait(const sigset_t& interrupted) noexcept {
  if (BlockedBefore* const mine = of_this_stack()) mine->store(&interrupted);
}

HandlerWait::~HandlerWait() {
  if (BlockedBefore* const mine = of_this_stack()) mine->store(nullptr);
}

bool HandlerWait::is_in_handler() noexcept { return blocked_before() != nullptr; }

void HandlerWait::end_if_requested() noexcept {
  const sigset_t* const before = blocked_before();
  sigset_t pending;
  if (before == nullptr || sigpending(&pending) != 0) return;
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    if (sigismember(&pending, number) != 1 || sigismember(before, number) == 1) continue;
    struct sigaction now{};
    const bool is_known = sigaction(number, nullptr, &now) == 0;
    if (!is_known || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) continue;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, nullptr);  // ends the process
  }
}

}  // namespace vellum::base
