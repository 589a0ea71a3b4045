// base/threads/end_request.hpp: the signals that end a process, as a request to its loop.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace vellum::base {

// While this object exists, SIGINT, SIGTERM and SIGHUP request the end, and no longer interrupt.
// Threads that its thread starts inherit that. Threads: the one that created it.
class EndRequest {
 public:
  EndRequest() {
    sigemptyset(&wanted_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&wanted_, number);
    pthread_sigmask(SIG_BLOCK, &wanted_, &before_);
  }
  ~EndRequest() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  EndRequest(const EndRequest&) = delete;
  EndRequest& operator=(const EndRequest&) = delete;
  bool has_come() {
    const timespec no_wait{};
    has_come_ |= sigtimedwait(&wanted_, nullptr, &no_wait) > 0;
    return has_come_;
  }

 private:
  sigset_t wanted_{}, before_{};
  bool has_come_ = false;
};

}  // namespace vellum::base
