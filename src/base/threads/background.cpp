#include "base/threads/background.hpp"

#include <cassert>
#include <utility>

#include "base/threads/start_thread.hpp"

namespace vellum::base {

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Background::start(std::function<void()> task) {
  assert(task != nullptr);
  {
    const std::lock_guard lock(mutex_);
    assert(task_ == nullptr && !stop_);
    if (!thread_.joinable()) {
      thread_ = start_thread("works in the background", [this] { run(); });
    }
    task_ = std::move(task);
  }
  changed_.notify_all();
}

void Background::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return task_ == nullptr; });
}

bool Background::wait_idle_for(std::chrono::nanoseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return task_ == nullptr; });
}

bool Background::idle() {
  const std::lock_guard lock(mutex_);
  return task_ == nullptr;
}

void Background::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || task_ != nullptr; });
    if (task_ == nullptr) return;
    lock.unlock();
    task_();
    lock.lock();
    task_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace vellum::base
