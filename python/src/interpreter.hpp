// python/src/interpreter.hpp: the interpreter's lock, its end, and its signals.
//
// When the interpreter ends, CPython before 3.14 ends each thread that requests its lock by
// pthread_exit(), whose unwinding meets C++ frames that it cannot pass: the process aborts. A
// thread that returns from a call of the library at that time therefore waits for the end of the
// process.
#pragma once

#include <nanobind/nanobind.h>
#include <vellum/region.hpp>

#include <functional>

namespace vellum::python {

// While it lives, this thread does not have the interpreter's lock. REQUIRES: it has it.
class WithoutLock {
 public:
  WithoutLock() noexcept : state_(PyEval_SaveThread()) {}
  ~WithoutLock();
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;

 private:
  PyThreadState* const state_;
};

// While it lives, this thread has the interpreter's lock. REQUIRES: it does not have it.
class WithLock {
 public:
  WithLock() noexcept;
  ~WithLock() { PyGILState_Release(state_); }
  WithLock(const WithLock&) = delete;
  WithLock& operator=(const WithLock&) = delete;

 private:
  PyGILState_STATE state_;
};

// Makes a commit without the interpreter's lock. Ctrl-C ends it, unless it is about to become
// durable: then nothing is committed, and the exception of Python's handler is thrown.
CommitReport interruptible(const std::function<CommitReport()>& commit);

}  // namespace vellum::python
