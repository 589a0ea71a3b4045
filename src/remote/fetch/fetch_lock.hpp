// remote/fetch/fetch_lock.hpp: locks in the cache directory, so that one process of a machine
// fetches an object and the others find its copy.
//
// Threads: all calls from any thread. Threads of one process exclude each other, too.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/files/file.hpp"
#include "base/files/new_file.hpp"

namespace vellum::remote {

// The right to fetch. It ends with its process.
class FetchLock {
 public:
  FetchLock(base::Fs& fs, std::unique_ptr<base::File> file) : fs_(fs), file_(std::move(file)) {}
  ~FetchLock() {
    if (file_ != nullptr) base::unlink_quietly(fs_, file_->path());
  }
  FetchLock(const FetchLock&) = delete;
  FetchLock& operator=(const FetchLock&) = delete;

 private:
  base::Fs& fs_;
  const std::unique_ptr<base::File> file_;
};

// Waits for the lock at `path`, at most for `timeout`. On a timeout or an error returns an empty
// lock; the caller fetches anyway.
FetchLock acquire_fetch_lock(base::Fs& fs, const std::string& path,
                             std::chrono::milliseconds timeout);

}  // namespace vellum::remote
