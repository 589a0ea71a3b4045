// memory/statistics/process_page.hpp: this process's page of counters.
#pragma once

#include <memory>
#include <mutex>

#include "memory/statistics/layout.hpp"

namespace vellum::region::statistics {

class ProcessPage {
 public:
  // The page of all regions of this process. Null: no memory or descriptor is available, and
  // nothing is counted.
  static std::shared_ptr<ProcessPage> get() noexcept;

  ~ProcessPage();
  ProcessPage(const ProcessPage&) = delete;
  ProcessPage& operator=(const ProcessPage&) = delete;

  // A slot whose counters are zero; null: all are in use. Any thread.
  Slot* claim() noexcept;
  void publish(Slot& slot) noexcept;  // its names and sizes are written
  void release(Slot& slot) noexcept;

 private:
  ProcessPage();  // throws without a descriptor or memory
  int descriptor_ = -1;
  Page* page_ = nullptr;
  std::mutex mutex_;  // guards the states
};

}  // namespace vellum::region::statistics
