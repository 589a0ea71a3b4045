// run/live/live_files.hpp: the live files of this process by branch, and how they end. A call in
// another thread may still use a file that the program has closed. If the program opens it again
// meanwhile, it gets the same LiveFile; if that is being closed, it waits until it is closed.
// Otherwise the opening would find the branch in use by its own process.
//
// Threads: any.
#pragma once

#include <memory>

#include "run/live/live_file.hpp"
#include "run/run/config.hpp"

namespace vellum::preload {

// Throws vellum::Error.
std::shared_ptr<LiveFile> open_live(const Config& config, const RunTarget& target);

// For fork(2): the lock must be free in the child, which does not have its parent's files.
void lock_live_files() noexcept;
void unlock_live_files() noexcept;

}  // namespace vellum::preload
