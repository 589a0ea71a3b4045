// base/threads/thread_pool.cpp: see thread_pool.hpp.
//
// A call of parallel_for is a Job on the caller's stack. Workers join it as they wake up, and the
// caller waits only for those that joined. A worker that sleeps during a short job costs nothing.
//
// fork(2) copies the locks but not the workers, which may have held them. A child therefore never
// uses the locks: it runs its jobs in the calling thread and leaks the pool's state.
#include "base/threads/thread_pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/threads/fork_count.hpp"
#include "base/threads/signals_blocked.hpp"

namespace vellum::base {
namespace {

using Body = std::function<void(std::size_t, std::size_t)>;

class Job {
 public:
  Job(std::size_t count, const Body& body) : count_(count), body_(body) {}

  // Takes indices until none remains or a body has thrown.
  void work(std::size_t worker) noexcept {
    try {
      while (!failed_.load(std::memory_order_relaxed)) {
        const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
        if (index >= count_) return;
        body_(index, worker);
      }
    } catch (...) {
      keep(std::current_exception());
    }
  }

  void rethrow() const {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

  std::size_t joined = 0;  // workers inside work(); guarded by the pool's mutex

 private:
  void keep(std::exception_ptr error) noexcept {
    if (!failed_.exchange(true)) error_ = std::move(error);
  }

  const std::size_t count_;
  const Body& body_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // read after all workers have finished
};

}  // namespace

unsigned processors() noexcept { return std::max(1U, std::thread::hardware_concurrency()); }

struct ThreadPool::Impl {
  explicit Impl(std::size_t threads) : wanted(threads) {}

  bool in_forked_child() const noexcept { return fork_count() != owner; }
  void start();
  void run_worker(std::size_t worker);
  void run(Job& job);

  const std::size_t wanted;
  const std::uint32_t owner = fork_count();
  std::mutex one_call;  // serializes callers
  bool started = false;

  std::mutex mutex;
  std::condition_variable job_posted;
  std::condition_variable worker_left;
  Job* job = nullptr;            // open for joining
  std::uint64_t job_number = 0;  // lets a worker join each job only once
  bool stopping = false;

  std::vector<std::thread> threads;
};

void ThreadPool::Impl::start() {
  if (started) return;
  started = true;
  const SignalsBlocked inherited_by_workers;
  threads.reserve(wanted);
  try {
    for (std::size_t worker = 1; worker <= wanted; ++worker) {
      threads.emplace_back([this, worker] { run_worker(worker); });
    }
  } catch (const std::system_error&) {
    // The system grants no more threads. The running ones, or only the caller, do the work.
  }
}

void ThreadPool::Impl::run_worker(std::size_t worker) {
  std::unique_lock lock(mutex);
  std::uint64_t seen = 0;
  for (;;) {
    job_posted.wait(lock, [&] { return stopping || (job != nullptr && job_number != seen); });
    if (stopping) return;
    seen = job_number;
    Job* mine = job;
    ++mine->joined;
    lock.unlock();
    mine->work(worker);
    lock.lock();
    assert(mine->joined > 0);
    if (--mine->joined == 0) worker_left.notify_all();
  }
}

void ThreadPool::Impl::run(Job& posted) {
  {
    const std::lock_guard lock(mutex);
    assert(job == nullptr && !stopping);
    job = &posted;
    ++job_number;
  }
  job_posted.notify_all();
  posted.work(0);
  std::unique_lock lock(mutex);
  job = nullptr;
  worker_left.wait(lock, [&] { return posted.joined == 0; });
}

ThreadPool::ThreadPool(std::size_t threads) : impl_(std::make_unique<Impl>(threads)) {}

ThreadPool::~ThreadPool() {
  if (impl_->in_forked_child()) {
    // No thread can be joined, and destroying the locks could block. The state is leaked.
    [[maybe_unused]] const Impl* leaked = impl_.release();
    return;
  }
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->job_posted.notify_all();
  for (std::thread& thread : impl_->threads) thread.join();
}

std::size_t ThreadPool::workers() const noexcept { return impl_->wanted; }

void ThreadPool::parallel_for(std::size_t count, const Body& body) {
  if (count == 0) return;
  Job job(count, body);
  if (impl_->in_forked_child()) {
    job.work(0);
    job.rethrow();
    return;
  }
  const std::lock_guard lock(impl_->one_call);
  if (impl_->wanted == 0 || count == 1) {
    job.work(0);  // waking a worker would cost more
  } else {
    impl_->start();
    impl_->run(job);
  }
  job.rethrow();
}

}  // namespace vellum::base
