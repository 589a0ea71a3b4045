// store/stream/ordered_work.hpp: parallel work on the ranges of a stream, with results in order.
//
// The caller fills one slot after the other. Threads work on the filled slots, in any order. One of
// them at a time takes the results, in the order in which the slots were filled. A slot is free
// again when its result is taken. The number of slots therefore bounds the memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace vellum::store {

class OrderedWork {
 public:
  struct Steps {
    std::function<void(std::size_t slot, std::size_t worker)> work;  // worker < the threads
    std::function<void(std::size_t slot)> take;                      // one at a time
  };
  // With 0 threads, or if the system grants none, the caller does all work, as worker 0.
  // REQUIRES: slots > 0.
  OrderedWork(std::size_t threads, std::size_t slots, Steps steps);
  ~OrderedWork();  // drops work that has not begun
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  // Waits for the next slot to be free, and returns it. Rethrows the first exception of a step.
  std::size_t free_slot();
  void submit();  // the slot that free_slot() returned is filled
  // Waits until all results are taken. Rethrows as free_slot() does.
  void finish();
  std::optional<std::size_t> last_taken() const;  // the slot of the newest result

 private:
  void run(std::size_t worker) noexcept;
  void work_on(std::uint64_t number, std::size_t worker, std::unique_lock<std::mutex>& lock);
  void wait_for(std::uint64_t taken);
  void stop() noexcept;

  const std::size_t slots_;
  const Steps steps_;
  mutable std::mutex mutex_;
  std::condition_variable filled_, freed_;
  // Numbers count the filled slots; number n is in slot n % slots_. taken_ <= begun_ <= submitted_.
  std::uint64_t submitted_ = 0, begun_ = 0, taken_ = 0;
  std::vector<bool> done_;  // by slot: worked on, and not yet taken
  bool taking_ = false, stopped_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace vellum::store
