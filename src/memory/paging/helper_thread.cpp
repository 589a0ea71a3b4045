#include "memory/paging/helper_thread.hpp"

#include <algorithm>
#include <cassert>
#include <climits>
#include <exception>

#include "base/threads/futex.hpp"
#include "base/threads/per_process.hpp"
#include "base/threads/signals_blocked.hpp"

namespace vellum::region {

using std::chrono::milliseconds;

HelperThread& HelperThread::read_ahead_thread() {
  static base::PerProcess<HelperThread> threads;
  return threads.get([] { return HelperThread(); });
}

HelperThread& HelperThread::reclaim_thread() {
  static base::PerProcess<HelperThread> threads;
  return threads.get([] { return HelperThread(); });
}

bool HelperThread::join(BackgroundTask& task) noexcept {
  const std::lock_guard lock(mutex_);
  assert(std::find(tasks_.begin(), tasks_.end(), &task) == tasks_.end());
  try {
    tasks_.reserve(tasks_.size() + 1);
    if (!thread_.joinable()) {
      const base::SignalsBlocked blocked;
      thread_ = std::thread([this, life = life_.fetch_add(1) + 1] { run(life); });
    }
  } catch (const std::exception&) {  // out of memory or threads: a later call tries again
    return false;
  }
  tasks_.push_back(&task);
  wake();
  return true;
}

void HelperThread::leave(BackgroundTask& task) noexcept {
  std::thread ended;
  {
    std::unique_lock lock(mutex_);
    const auto joined = std::find(tasks_.begin(), tasks_.end(), &task);
    assert(joined != tasks_.end());
    tasks_.erase(joined);
    step_ended_.wait(lock, [&] { return current_ != &task; });
    // A task that another thread removes may still run: that thread then ends this one.
    if (tasks_.empty() && current_ == nullptr) {
      life_.fetch_add(1);
      ended.swap(thread_);
    }
  }
  if (!ended.joinable()) return;
  base::futex_wake(life_, INT_MAX);
  calls_.fetch_add(1);
  base::futex_wake(calls_, INT_MAX);
  ended.join();
}

// Counts before it checks whether the thread sleeps: pairs with sleep_until_wake(). All threads are
// woken, as one of them may be of an earlier life.
void HelperThread::wake() noexcept {
  calls_.fetch_add(1);
  if (asleep_.load() != 0) base::futex_wake(calls_, INT_MAX);
}

void HelperThread::sleep_until_wake(std::uint32_t calls) noexcept {
  asleep_.fetch_add(1);
  base::futex_wait(calls_, calls);
  asleep_.fetch_sub(1);
}

// Returns the shortest pause of the tasks. Tasks may join and leave meanwhile: one may then run
// twice, or later.
std::optional<milliseconds> HelperThread::run_all(std::unique_lock<std::mutex>& lock,
                                                  std::uint32_t life) {
  std::optional<milliseconds> next;
  for (std::size_t i = 0; i < tasks_.size() && life_ == life; ++i) {
    BackgroundTask* const task = current_ = tasks_[i];
    lock.unlock();
    const auto wanted = task->step();
    lock.lock();
    current_ = nullptr;
    step_ended_.notify_all();
    if (wanted) next = std::min(*wanted, next.value_or(*wanted));
  }
  return next;
}

// wake() does not shorten a pause: commits in quick succession would leave none.
void HelperThread::run(std::uint32_t life) {
  std::unique_lock lock(mutex_);
  while (life_ == life) {
    const std::uint32_t calls = calls_.load();
    const auto pause = run_all(lock, life);
    if (pause == milliseconds(0)) continue;
    lock.unlock();
    if (pause) {
      base::futex_wait(life_, life, pause);
    } else {
      sleep_until_wake(calls);
    }
    lock.lock();
  }
}

}  // namespace vellum::region
