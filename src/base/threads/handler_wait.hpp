// base/threads/handler_wait.hpp: lets signals end a process that waits in a fault handler.
//
// A fault handler runs with all signals blocked (memory/kernel/fault_router.cpp), and may wait for
// a remote for minutes. A wait therefore checks periodically whether a pending SIGHUP, SIGINT,
// SIGQUIT or SIGTERM would end the process, and then unblocks it. A signal that the program handles
// remains pending until the page is loaded.
//
// A thread is identified by its stack and not by a thread_local variable. In a handler that
// variable would need the TLS model initial-exec, and dlopen(3) does not load a library whose
// variables of this model are too large.
#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>

namespace vellum::base {

class HandlerWait {
 public:
  // The time between two checks.
  static constexpr std::chrono::milliseconds kStep{500};
  static constexpr std::size_t kMaxStacks = 256;

  // Sets the stacks of handlers, at most kMaxStacks adjacent ones. Called once.
  static void set_stacks(const std::byte* begin, std::size_t bytes_each,
                         std::size_t count) noexcept;

  // While this object exists, its thread is in a handler. `interrupted`: the signals that were
  // blocked before. Has no effect on other stacks.
  explicit HandlerWait(const sigset_t& interrupted) noexcept;
  ~HandlerWait();
  HandlerWait(const HandlerWait&) = delete;
  HandlerWait& operator=(const HandlerWait&) = delete;

  static bool is_in_handler() noexcept;
  static void end_if_requested() noexcept;
};

}  // namespace vellum::base
