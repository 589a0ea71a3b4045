// base/threads/handler_wait.hpp: waits of a fault handler end when the user ends the process.
//
// A fault handler runs with all signals blocked (region/kernel/fault_router.cpp), and may wait for a remote for
// minutes. So a wait looks now and then whether SIGHUP, SIGINT, SIGQUIT or SIGTERM is pending that would end the
// process, and lets it. One that the program handles stays pending until the page is there.
#pragma once

#include <chrono>
#include <csignal>

namespace vellum::base {

class HandlerWait {
 public:
  // How long a wait may go on before the next look.
  static constexpr std::chrono::milliseconds kStep{500};

  // While it lives, this thread is in a handler; `interrupted`: the signals that were blocked before.
  explicit HandlerWait(const sigset_t& interrupted) noexcept : before_(blocked_before) {
    blocked_before = &interrupted;
  }
  ~HandlerWait() { blocked_before = before_; }
  HandlerWait(const HandlerWait&) = delete;
  HandlerWait& operator=(const HandlerWait&) = delete;

  static bool is_in_handler() noexcept { return blocked_before != nullptr; }
  static void end_if_asked() noexcept;

 private:
  // A handler may be this variable's first use in a thread: the model without a call for its address.
  [[gnu::tls_model("initial-exec")]] static thread_local const sigset_t* blocked_before;

  const sigset_t* const before_;
};

}  // namespace vellum::base
