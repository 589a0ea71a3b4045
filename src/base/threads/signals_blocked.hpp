// base/threads/signals_blocked.hpp: the signal mask of the library's own threads.
#pragma once

#include <pthread.h>

#include <csignal>

namespace vellum::base {

// While this object exists, threads that its thread starts have the application's signals blocked;
// the application's own threads receive them. Signals of faults must not be blocked: they would
// kill the process instead of running the handler.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace vellum::base
