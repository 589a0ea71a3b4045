// Replication: a separate thread pushes a store's commits to a remote until it is stopped.
#include <nanobind/stl/string.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vellum/store.hpp>

#include "bindings.hpp"
#include "report.hpp"

namespace vellum::python {
namespace {

// Signals go to the program's own threads while this lives: threads of the library inherit the
// mask.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

// The shared state of the thread and its owner. The thread never takes the interpreter's lock.
class Work {
 public:
  Work(const Store& store, std::string url, const ReplicateOptions& options)
      : store_(store), url_(std::move(url)), options_(options) {}

  void run() {
    ReplicateState last;
    std::exception_ptr error;
    try {
      last = store_.replicate(url_, options_, [this](const ReplicateState& now) {
        const std::lock_guard lock(mutex_);
        state_ = now;
        return !is_end_asked_;
      });
    } catch (const std::exception& e) {
      error = std::current_exception();
      last = state();
      last.failure = e.what();
    }
    const std::lock_guard lock(mutex_);
    state_ = last;
    error_ = error;
    has_ended_ = true;
    change_.notify_all();
  }

  void ask_end() {
    const std::lock_guard lock(mutex_);
    is_end_asked_ = true;
  }

  bool wait(double seconds) {
    std::unique_lock lock(mutex_);
    return change_.wait_for(lock, std::chrono::duration<double>(seconds),
                            [this] { return has_ended_; });
  }

  ReplicateState state() {
    const std::lock_guard lock(mutex_);
    return state_;
  }

  void rethrow() {
    const std::lock_guard lock(mutex_);
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  Store store_;
  const std::string url_;
  const ReplicateOptions options_;
  std::mutex mutex_;
  std::condition_variable change_;
  ReplicateState state_;
  std::exception_ptr error_;
  bool is_end_asked_ = false, has_ended_ = false;
};

// A child of fork(2) does not have the thread: there a Replication has ended, and uses neither the
// thread nor the shared state.
class Replication {
 public:
  Replication(const Store& store, const FileName& url, std::uint64_t interval_ms, bool take_over)
      : work_(std::make_shared<Work>(
            store, url.bytes,
            ReplicateOptions{std::chrono::milliseconds(interval_ms), take_over})) {
    const NoSignals in_the_thread;
    thread_ = std::make_unique<std::thread>([work = work_] { work->run(); });
  }

  // Does not wait for a server: a thread that is still running ends by itself.
  ~Replication() {
    if (is_in_child()) {
      (void)thread_.release();
    } else if (work_->wait(0)) {
      thread_->join();
    } else {
      work_->ask_end();
      thread_->detach();
    }
  }
  Replication(const Replication&) = delete;
  Replication& operator=(const Replication&) = delete;

  // A last push follows.
  void ask_end() {
    if (!is_in_child()) work_->ask_end();
  }
  // True: it has ended.
  bool wait(double seconds) { return is_in_child() || work_->wait(seconds); }
  ReplicateState state() { return is_in_child() ? ReplicateState{} : work_->state(); }
  // Throws the error that ended the replication, if it was not stopped.
  void rethrow() {
    if (!is_in_child()) work_->rethrow();
  }

 private:
  bool is_in_child() const { return getpid() != pid_; }

  const pid_t pid_ = getpid();
  std::shared_ptr<Work> work_;
  std::unique_ptr<std::thread> thread_;
};

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void bind_replication(nb::module_& module) {
  using State = ReplicateState;
  Report<State>(module, "ReplicateState", "The progress of a replication.")
      .field("pushes", &State::pushes, "Pushes that sent data.")
      .field("versions", &State::versions, "Versions that were sent.")
      .field("bytes_uploaded", &State::bytes_uploaded, "Bytes that were sent.")
      .field("failure", &State::failure, "The error of the last push; empty: it succeeded.")
      .field(
          "behind_seconds", [](const State& s) { return seconds(s.behind); },
          "The time since the oldest commit that is not at the remote was noticed; 0: there is "
          "none.");
  nb::class_<Replication>(module, "Replication")
      .def(nb::init<const Store&, const FileName&, std::uint64_t, bool>(), nb::arg("store"),
           nb::arg("url"), nb::arg("interval_ms"), nb::arg("take_over"))
      .def("ask_end", &Replication::ask_end)
      .def("wait", &Replication::wait, nb::arg("seconds"), Unlocked())
      .def("rethrow", &Replication::rethrow)
      .def_prop_ro("state", &Replication::state);
}

}  // namespace vellum::python
