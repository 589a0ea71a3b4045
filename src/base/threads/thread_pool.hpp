// base/threads/thread_pool.hpp: a small fixed pool for encoding and decoding in parallel.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace vellum::base {

// The number of the machine's processors: at least 1; 1 if it is unknown.
unsigned processors() noexcept;

class ThreadPool {
 public:
  // `threads` workers in addition to the caller; with 0 the caller runs everything. Threads start
  // at the first parallel_for. They block all signals except those of faults (SIGSEGV, SIGBUS,
  // ...), whose handler must run.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t workers() const noexcept;  // at most this many + 1 bodies run at once

  // Calls body(index, worker) for every index in [0, count); the caller takes part as worker 0.
  // worker < workers() + 1, and no two bodies run at once with the same worker number. Returns when
  // all are done. The first exception of a body is rethrown here after all started bodies have
  // ended. No further body starts after one has thrown. Concurrent calls from several threads run
  // one after the other. REQUIRES: `body` does not call parallel_for of the same pool.
  //
  // A child of fork(2) has no workers: there the caller runs everything as worker 0, and only one
  // thread may call at a time. Destroying the pool there is safe.
  void parallel_for(std::size_t count,
                    const std::function<void(std::size_t index, std::size_t worker)>& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::base
