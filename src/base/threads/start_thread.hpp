// base/threads/start_thread.hpp: starts the library's own threads.
#pragma once

#include <future>
#include <system_error>
#include <thread>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/threads/signals_blocked.hpp"

namespace vellum::base {

// The thread receives no signals of the application. Throws Errc::out_of_memory if the system
// grants none (ulimit -u, -v). `what` completes "the thread that ..." in the message.
template <typename Body>
std::thread start_thread(const char* what, Body&& body) {
  const SignalsBlocked blocked;
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& e) {
    fail(Errc::out_of_memory, "cannot start the thread that {}: {}", what, e.what());
  }
}

// Starts `body` concurrently with the caller. If the system grants no thread, `body` runs when the
// caller gets or waits for the result, and never otherwise.
template <typename Body>
auto beside(Body&& body) {
  return std::async(std::launch::async | std::launch::deferred, std::forward<Body>(body));
}

}  // namespace vellum::base
