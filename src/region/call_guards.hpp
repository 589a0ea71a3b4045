// region/call_guards.hpp: the locks and checks at the start of each call of a region's handle.
#pragma once

#include <cassert>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "base/fail.hpp"
#include "base/threads/fork_count.hpp"
#include "region/region_impl.hpp"

namespace vellum::region {

inline void require_valid(const std::shared_ptr<RegionAccess::Impl>& impl) {
  if (impl == nullptr || impl->closed)
    fail(Errc::invalid_argument, "this Region is closed, or was never opened");
  if (impl->owner != base::fork_count()) {
    fail(Errc::invalid_argument, "region '{}' belongs to the process that opened it, not to a fork",
         impl->name);
  }
}

inline void require_writable(const RegionAccess::Impl& impl) {
  if (!impl.shape.writable) fail(Errc::read_only, "version '{}' is open read-only", impl.name);
}

// A call that changes the region: one at a time, after all asynchronous commits.
class WriterCall {
 public:
  explicit WriterCall(const std::shared_ptr<RegionAccess::Impl>& impl) {
    require_valid(impl);
    require_writable(*impl);
    lock_ = std::unique_lock(impl->mutex);
    require_valid(impl);  // another thread may have closed it before this one got the lock
    impl->background->wait_idle();
    assert(impl->writer != nullptr && impl->memory != nullptr);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

// A call that runs concurrently with others: the memory stays mapped until the call ends.
class ReaderCall {
 public:
  explicit ReaderCall(const std::shared_ptr<RegionAccess::Impl>& impl) {
    require_valid(impl);
    lock_ = std::shared_lock(impl->inside);
    require_valid(impl);
    assert(impl->memory != nullptr);
  }

 private:
  std::shared_lock<std::shared_mutex> lock_;
};

}  // namespace vellum::region
