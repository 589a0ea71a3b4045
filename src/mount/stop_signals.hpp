// mount/stop_signals.hpp: SIGINT, SIGTERM and SIGHUP end a mount without losing data. libfuse's own
// handlers end its loop at once. Stores of programs to mappings would then remain in the kernel,
// which could no longer send them.
#pragma once

#include <pthread.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "mount/fuse.hpp"

namespace vellum::mount {

// One at a time in a process. While it exists, one of these signals makes the kernel send its
// unwritten pages, and then ends the loop of the thread that has created this object.
class StopSignals {
 public:
  // `written`: the paths of the files that programs may have written.
  StopSignals(fuse_session* session, std::vector<std::string> written);
  // REQUIRES: the loop has ended.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  void wait_and_stop();

  fuse_session* const session_;
  const std::vector<std::string> written_;
  const pthread_t loop_;
  std::atomic<bool> ended_{false};
  std::thread waiting_;
};

}  // namespace vellum::mount
