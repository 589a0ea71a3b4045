#include "memory/paging/helper_thread.hpp"

#include <algorithm>
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

HelperThread& HelperThread::that_reclaims() {
  static base::PerProcess<HelperThread> threads;
  return threads.get([] { return HelperThread(); });
}

bool HelperThread::join(HelpedRegion& region) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    regions_.reserve(regions_.size() + 1);
    if (!thread_.joinable()) {
      const base::SignalsBlocked blocked;
      thread_ = std::thread([this, life = life_.fetch_add(1) + 1] { run(life); });
    }
  } catch (const std::exception&) {  // out of memory or threads: a later call tries again
    return false;
  }
  regions_.push_back(&region);
  wake();
  return true;
}

void HelperThread::leave(HelpedRegion& region) noexcept {
  std::thread ended;
  {
    std::unique_lock lock(mutex_);
    regions_.erase(std::find(regions_.begin(), regions_.end(), &region));
    asked_.wait(lock, [&] { return current_ != &region; });
    // A region that another thread takes out may still be in use: that thread then ends this one.
    if (regions_.empty() && current_ == nullptr) {
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

// Counts before it looks whether the thread sleeps: pairs with sleep_until_call(). All are woken,
// as one of them may be of an earlier life.
void HelperThread::wake() noexcept {
  calls_.fetch_add(1);
  if (asleep_.load() != 0) base::futex_wake(calls_, INT_MAX);
}

void HelperThread::sleep_until_call(std::uint32_t calls) noexcept {
  asleep_.fetch_add(1);
  base::futex_wait(calls_, calls);
  asleep_.fetch_sub(1);
}

// Returns the shortest of the regions' times. Regions may come and go meanwhile: one may then be
// asked twice, or later.
std::optional<milliseconds> HelperThread::ask_all(std::unique_lock<std::mutex>& lock,
                                                  std::uint32_t life) {
  std::optional<milliseconds> next;
  for (std::size_t i = 0; i < regions_.size() && life_ == life; ++i) {
    HelpedRegion* const region = current_ = regions_[i];
    lock.unlock();
    const auto wanted = region->help();
    lock.lock();
    current_ = nullptr;
    asked_.notify_all();
    if (wanted) next = std::min(*wanted, next.value_or(*wanted));
  }
  return next;
}

// A call does not cut a pause short: commits in quick succession would take its place.
void HelperThread::run(std::uint32_t life) {
  std::unique_lock lock(mutex_);
  while (life_ == life) {
    const std::uint32_t calls = calls_.load();
    const auto pause = ask_all(lock, life);
    if (pause == milliseconds(0)) continue;
    lock.unlock();
    if (pause) {
      base::futex_wait(life_, life, pause);
    } else {
      sleep_until_call(calls);
    }
    lock.lock();
  }
}

}  // namespace vellum::region
