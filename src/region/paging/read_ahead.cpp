#include "region/paging/read_ahead.hpp"

#include <algorithm>
#include <exception>
#include <new>

#include "base/per_process.hpp"
#include "base/signals_blocked.hpp"

namespace vellum::region {

ReadAhead& ReadAhead::of_process() {
  static base::PerProcess<ReadAhead> aheads;
  return aheads.get([] { return ReadAhead(); });
}

bool ReadAhead::join(ReadAheadTarget& target) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    targets_.push_back(&target);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (thread_.joinable()) return true;
  const base::SignalsBlocked blocked;
  try {
    thread_ = std::thread([this, life = ++life_] { run(life); });
  } catch (const std::exception&) {  // too many threads: the next join() tries again
  }
  return true;
}

void ReadAhead::leave(ReadAheadTarget& target) noexcept {
  std::thread ended;
  {
    std::unique_lock lock(mutex_);
    targets_.erase(std::find(targets_.begin(), targets_.end(), &target));
    stepped_.wait(lock, [&] { return current_ != &target; });
    // A target that another thread is leaving may still be in use: that thread then ends this one.
    if (targets_.empty() && current_ == nullptr) {
      ++life_;
      ended.swap(thread_);
    }
  }
  if (!ended.joinable()) return;
  calls_.fetch_add(1);
  calls_.notify_all();
  ended.join();
}

void ReadAhead::run(std::uint64_t life) {
  std::unique_lock lock(mutex_);
  while (life_ == life) {
    const std::uint32_t calls = calls_.load();
    bool any = false;
    // Targets may come and go meanwhile: one may then be asked twice, or later.
    for (std::size_t i = 0; i < targets_.size() && life_ == life; ++i) {
      ReadAheadTarget* const target = current_ = targets_[i];
      lock.unlock();
      any |= target->read_ahead_step();
      lock.lock();
      current_ = nullptr;
      stepped_.notify_all();
    }
    if (any || life_ != life) continue;
    lock.unlock();
    calls_.wait(calls);
    lock.lock();
  }
}

}  // namespace vellum::region
