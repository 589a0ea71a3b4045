#include "store/stream/ordered_work.hpp"

#include <cassert>
#include <system_error>
#include <utility>

#include "base/threads/signals_blocked.hpp"

namespace vellum::store {

OrderedWork::OrderedWork(std::size_t threads, std::size_t slots, Steps steps)
    : slots_(slots), steps_(std::move(steps)), done_(slots) {
  assert(slots > 0);
  const base::SignalsBlocked inherited_by_threads;
  threads_.reserve(threads);
  try {
    for (std::size_t worker = 0; worker < threads; ++worker) {
      threads_.emplace_back([this, worker] { run(worker); });
    }
  } catch (const std::system_error&) {
    // The system grants no more threads. The started ones, or the caller, do the work.
  }
}

OrderedWork::~OrderedWork() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

void OrderedWork::stop() noexcept {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  filled_.notify_all();
}

void OrderedWork::run(std::size_t worker) noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    filled_.wait(lock, [&] { return stopped_ || begun_ < submitted_; });
    if (stopped_) return;
    try {
      work_on(begun_++, worker, lock);
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      if (error_ == nullptr) error_ = std::current_exception();
      stopped_ = true;
      filled_.notify_all();
      freed_.notify_all();
      return;
    }
  }
}

// The thread that finds the next result done takes it, and those that follow it.
void OrderedWork::work_on(std::uint64_t number, std::size_t worker,
                          std::unique_lock<std::mutex>& lock) {
  assert(lock.owns_lock() && number < submitted_);
  lock.unlock();
  steps_.work(number % slots_, worker);
  lock.lock();
  done_[number % slots_] = true;
  if (taking_) return;
  taking_ = true;
  while (done_[taken_ % slots_] && !stopped_) {
    const std::size_t slot = taken_ % slots_;
    done_[slot] = false;
    lock.unlock();
    steps_.take(slot);
    lock.lock();
    ++taken_;
    freed_.notify_all();
  }
  taking_ = false;
}

void OrderedWork::wait_for(std::uint64_t taken) {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return error_ != nullptr || taken_ >= taken; });
  if (error_ != nullptr) std::rethrow_exception(error_);
}

std::size_t OrderedWork::free_slot() {
  wait_for(submitted_ < slots_ ? 0 : submitted_ - slots_ + 1);
  return submitted_ % slots_;
}

void OrderedWork::submit() {
  std::unique_lock lock(mutex_);
  const std::uint64_t number = submitted_++;
  if (!threads_.empty()) {
    filled_.notify_one();
    return;
  }
  ++begun_;
  work_on(number, 0, lock);
}

void OrderedWork::finish() { wait_for(submitted_); }

std::optional<std::size_t> OrderedWork::last_taken() const {
  const std::lock_guard lock(mutex_);
  assert(taken_ <= begun_ && begun_ <= submitted_);
  if (taken_ == 0) return std::nullopt;
  return (taken_ - 1) % slots_;
}

}  // namespace vellum::store
