// base/threads/start_thread.hpp: starting a thread that the application does not know of.
#pragma once

#include <future>
#include <system_error>
#include <thread>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/threads/signals_blocked.hpp"

namespace vellum::base {

// The thread takes no signals of the application. Throws Errc::out_of_memory where the system grants
// none (ulimit -u, -v); `what` says what it is for: "the thread that ...".
template <typename Body>
std::thread start_thread(const char* what, Body&& body) {
  const SignalsBlocked blocked;
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& e) {
    fail(Errc::out_of_memory, "cannot start the thread that {}: {}", what, e.what());
  }
}

// Begins `body` beside the caller. Where the system grants no thread, it runs when its result is
// asked for or waited for, and never without that.
template <typename Body>
auto beside(Body&& body) {
  return std::async(std::launch::async | std::launch::deferred, std::forward<Body>(body));
}

}  // namespace vellum::base
