// remote/fetch/fetch_lock.hpp: locks in the cache directory, by which the processes of a machine take turns at
// fetching something.
//
// Threads: all calls from any thread. Threads of one process take turns, too.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/files/file.hpp"
#include "base/files/new_file.hpp"

namespace vellum::remote {

// The right to fetch. It dies with its holder.
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

// Waits while another has the turn at `path`, at most for `longest`. A turn that could not be had
// holds nothing: whoever has it fetches all the same.
FetchLock acquire_fetch_lock(base::Fs& fs, const std::string& path,
                             std::chrono::milliseconds timeout);

}  // namespace vellum::remote
