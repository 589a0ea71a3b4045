// region/call_guards.hpp: what each call of a region's handle begins with.
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

// The turn of a call that changes the region: it comes after everything that was begun before.
class WriterCall {
 public:
  explicit WriterCall(const std::shared_ptr<RegionAccess::Impl>& impl) {
    require_valid(impl);
    require_writable(*impl);
    lock_ = std::unique_lock(impl->mutex);
    require_valid(impl);  // another thread may have closed it before this turn
    impl->background->wait_idle();
    assert(impl->writer != nullptr && impl->memory != nullptr);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

// For calls that take no turn: the memory stays until the call is done.
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
