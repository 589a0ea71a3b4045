// base/threads/handler_wait.hpp: waits of a fault handler end when the user ends the process.
//
// A fault handler runs with all signals blocked (memory/kernel/fault_router.cpp), and may wait for a remote for
// minutes. So a wait looks now and then whether SIGHUP, SIGINT, SIGQUIT or SIGTERM is pending that would end the
// process, and lets it. One that the program handles stays pending until the page is there.
//
// A thread is known by the stack that it stands on, and not by a thread_local variable: in a handler that would
// need the model initial-exec, with which a library is not loaded by dlopen(3) where its variables are too large.
#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>

namespace vellum::base {

class HandlerWait {
 public:
  // How long a wait may go on before the next look.
  static constexpr std::chrono::milliseconds kStep{500};
  static constexpr std::size_t kMaxStacks = 256;

  // The stacks of handlers, at most kMaxStacks side by side. Called once.
  static void know_stacks(const std::byte* begin, std::size_t bytes_each,
                          std::size_t count) noexcept;

  // While it lives, this thread is in a handler; `interrupted`: the signals that were blocked before. Without
  // effect on another stack than those.
  explicit HandlerWait(const sigset_t& interrupted) noexcept;
  ~HandlerWait();
  HandlerWait(const HandlerWait&) = delete;
  HandlerWait& operator=(const HandlerWait&) = delete;

  static bool is_in_handler() noexcept;
  static void end_if_asked() noexcept;
};

}  // namespace vellum::base
