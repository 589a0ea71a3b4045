#include "base/threads/handler_wait.hpp"

namespace vellum::base {

constinit thread_local const sigset_t* HandlerWait::blocked_before = nullptr;

void HandlerWait::end_if_asked() noexcept {
  sigset_t pending;
  if (blocked_before == nullptr || sigpending(&pending) != 0) return;
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    if (sigismember(&pending, number) != 1 || sigismember(blocked_before, number) == 1) continue;
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
