// Pins: pages that stay in memory.
#include <cassert>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vellum/region.hpp>

#include "base/threads/fork_count.hpp"
#include "region/call_guards.hpp"
#include "region/region_impl.hpp"

namespace vellum {

using format::PageNumber;
using region::ReaderCall;

struct Pin::Impl {
  std::shared_ptr<region::RegionAccess::Impl> region;
  PageNumber first = 0;
  std::size_t count = 0;
  bool pinned = false;
  void hold(std::shared_ptr<region::RegionAccess::Impl> of, PageNumber from, std::size_t pages) {
    assert(region == nullptr && pages != 0);
    region = std::move(of);
    first = from;
    count = pages;
    region->memory->hold(first, count);
  }
  // A child of fork(2) has no part in the region. It may have inherited the lock from a thread that
  // it does not have.
  ~Impl() {
    if (count == 0 || region->owner != base::fork_count()) return;
    const std::shared_lock inside(region->inside);
    if (region->closed) return;
    if (pinned) region->memory->unpin(first, count);
    region->memory->release(first, count);
  }
};

Pin::Pin() noexcept = default;
Pin::~Pin() = default;
Pin::Pin(Pin&&) noexcept = default;
Pin& Pin::operator=(Pin&&) noexcept = default;
void Pin::release() noexcept { impl_.reset(); }

Pin Region::pin(ByteRange range) const {
  const ReaderCall call(impl_);
  auto pin = std::make_shared<Pin::Impl>();
  const auto [first, count] = impl_->find_pages(range);
  if (count != 0) {
    pin->hold(impl_, first, count);  // first, so that no loaded page is evicted
    impl_->make_present(first, count);
    impl_->memory->pin(first, count);
    pin->pinned = true;
  }
  return Pin(std::move(pin));
}

}  // namespace vellum
