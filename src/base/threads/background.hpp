// base/threads/background.hpp: a thread that runs one task at a time for its owner.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace vellum::base {

// The thread starts with the first task and receives no signals of the application. Any thread may
// wait. Only one thread at a time may start tasks.
class Background {
 public:
  Background() = default;
  ~Background();  // waits for the task
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // REQUIRES: idle; `task` throws nothing. Throws Errc::out_of_memory when no thread can be
  // started; the task has then not begun.
  void start(std::function<void()> task);
  void wait_idle();
  bool wait_idle_for(std::chrono::nanoseconds time);  // false: the task is still running
  bool idle();                                        // after true, the task's writes are visible

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;  // null: idle
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace vellum::base
