#include "interpreter.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/threads/interruption.hpp"
#include "bindings.hpp"

namespace vellum::python {
namespace {

std::atomic<bool> is_ending{false};
std::atomic<int> coming_back{0};  // threads that wait for the interpreter's lock
std::atomic<std::thread::id> last_thread;

// Waits for the end of the process if the interpreter is ending.
void begin_coming_back() noexcept {
  coming_back.fetch_add(1);
  if (!is_ending.load() || last_thread.load() == std::this_thread::get_id()) return;
  coming_back.fetch_sub(1);
  coming_back.notify_all();
  for (;;) pause();
}

void end_coming_back() noexcept {
  coming_back.fetch_sub(1);
  if (is_ending.load()) coming_back.notify_all();
}

// From now on only this thread gets the interpreter's lock again.
void begin_end() {
  last_thread.store(std::this_thread::get_id());
  is_ending.store(true);
  const nb::gil_scoped_release unlocked;
  for (int left = coming_back.load(); left != 0; left = coming_back.load()) {
    coming_back.wait(left);
  }
}

// A child has only the thread that called fork(2).
void begin_child() {
  coming_back.store(0);
  is_ending.store(false);
}

// ---- Ctrl-C

std::atomic<bool> has_interrupt{false};
struct sigaction before_watch;  // Python's own

void on_interrupt(int number, siginfo_t* info, void* context) {
  has_interrupt.store(true, std::memory_order_relaxed);
  if ((before_watch.sa_flags & SA_SIGINFO) != 0) {
    before_watch.sa_sigaction(number, info, context);
  } else {
    before_watch.sa_handler(number);
  }
}

// Detects SIGINT while it lives, in addition to Python's handler. REQUIRES: the main thread, the
// only one that sets handlers in Python.
class InterruptWatch {
 public:
  InterruptWatch() noexcept {
    has_interrupt.store(false);
    sigaction(SIGINT, nullptr, &before_watch);
    const bool is_handled =
        (before_watch.sa_flags & SA_SIGINFO) != 0 ||
        (before_watch.sa_handler != SIG_DFL && before_watch.sa_handler != SIG_IGN);
    if (!is_handled) return;
    struct sigaction watch = before_watch;
    watch.sa_flags |= SA_SIGINFO;
    watch.sa_sigaction = &on_interrupt;
    is_set_ = sigaction(SIGINT, &watch, nullptr) == 0;
  }
  ~InterruptWatch() {
    if (is_set_) sigaction(SIGINT, &before_watch, nullptr);
  }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  bool is_set_ = false;
};

bool is_main_thread() { return getpid() == gettid(); }

}  // namespace

WithoutLock::~WithoutLock() {
  begin_coming_back();
  PyEval_RestoreThread(state_);
  end_coming_back();
}

WithLock::WithLock() noexcept {
  begin_coming_back();
  state_ = PyGILState_Ensure();
  end_coming_back();
}

CommitReport interruptible(const std::function<CommitReport()>& commit) {
  if (is_main_thread()) {
    try {
      const InterruptWatch watch;
      const base::Interruptible asked(has_interrupt);
      const WithoutLock unlocked;
      return commit();
    } catch (const base::Interrupted&) {
      // The handler runs here, without any locks held: it may itself use the region.
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }
  const WithoutLock unlocked;
  return commit();
}

void bind_interpreter(nb::module_& module) {
  module.def("begin_end", &begin_end, "For atexit.");
  module.def("begin_child", &begin_child, "For a child of fork(2).");
}

}  // namespace vellum::python
