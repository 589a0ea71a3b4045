#include "region/paging/reclaimer.hpp"

#include <algorithm>
#include <exception>

#include "base/per_process.hpp"
#include "base/signals_blocked.hpp"

namespace vellum::region {

Reclaimer& Reclaimer::of_process() {
  static base::PerProcess<Reclaimer> reclaimers;
  return reclaimers.get([] { return Reclaimer(); });
}

bool Reclaimer::join(ReclaimTarget& target) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    targets_.reserve(targets_.size() + 1);
    if (!thread_.joinable()) {
      const base::SignalsBlocked blocked;
      thread_ = std::thread([this, life = ++life_] { run(life); });
    }
  } catch (const std::exception&) {  // out of memory or threads: the next commit tries again
    return false;
  }
  targets_.push_back(&target);
  return true;
}

void Reclaimer::leave(ReclaimTarget& target) noexcept {
  std::thread ended;
  {
    std::unique_lock lock(mutex_);
    targets_.erase(std::find(targets_.begin(), targets_.end(), &target));
    changed_.wait(lock, [&] { return current_ != &target; });
    // A target that another thread is leaving may still be in use: that thread then ends this one.
    if (targets_.empty() && current_ == nullptr) {
      ++life_;
      ended.swap(thread_);
    }
  }
  changed_.notify_all();
  if (ended.joinable()) ended.join();
}

// Counts before it looks whether the thread sleeps: pairs with run().
void Reclaimer::wake() noexcept {
  calls_.fetch_add(1);
  if (!asleep_.load()) return;
  {
    const std::lock_guard lock(mutex_);
  }
  changed_.notify_all();
}

// Returns the shortest of the targets' times. Targets may come and go meanwhile: one may then be
// asked twice, or later.
std::optional<std::chrono::milliseconds> Reclaimer::ask_all(std::unique_lock<std::mutex>& lock,
                                                            std::uint64_t life) {
  std::optional<std::chrono::milliseconds> next;
  for (std::size_t i = 0; i < targets_.size() && life_ == life; ++i) {
    ReclaimTarget* const target = current_ = targets_[i];
    lock.unlock();
    const auto wanted = target->reclaim();
    lock.lock();
    current_ = nullptr;
    changed_.notify_all();
    if (wanted) next = std::min(*wanted, next.value_or(*wanted));
  }
  return next;
}

void Reclaimer::run(std::uint64_t life) {
  std::unique_lock lock(mutex_);
  while (life_ == life) {
    const std::uint32_t calls = calls_.load();
    const auto pause = ask_all(lock, life);
    if (pause) {
      changed_.wait_for(lock, *pause, [&] { return life_ != life; });
      continue;
    }
    asleep_.store(true);
    changed_.wait(lock, [&] { return life_ != life || calls_.load() != calls; });
    asleep_.store(false);
  }
}

}  // namespace vellum::region
