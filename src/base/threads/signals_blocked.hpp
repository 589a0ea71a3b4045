// base/threads/signals_blocked.hpp: signal masks for threads that the application does not know of.
#pragma once

#include <pthread.h>

#include <csignal>

namespace vellum::base {

// While it lives, threads that this thread starts begin without the application's signals, which go
// to its own threads. Signals that a fault raises must get through: blocked, they would kill the
// process instead of running the handler.
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
