// An old version in a region's memory (vellum/region.hpp).
#include <vellum/cards.h>
#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>
#include <vellum/store.hpp>

#include "region/api/store_impl.hpp"
#include "region/call_guards.hpp"
#include "region/region_impl.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/page_map/diff.hpp"

namespace vellum {
namespace {

using format::kPageBytes;
using format::PageNumber;

constexpr std::size_t kMaxPages = 256;  // read at once

class Checkout {
 public:
  // REQUIRES: the memory equals the last commit.
  Checkout(region::RegionAccess::Impl& region, const std::string& name)
      : region_(region),
        head_(store::resolve_kept(*region.core, region.name)),
        wanted_(store::resolve_kept(*region.core, name)),
        before_(open(head_)),
        after_(open(wanted_)),
        buffer_(kMaxPages * kPageBytes) {}

  void run() {
    const auto pages = pages_that_may_differ(*before_, head_.version, *after_, wanted_.version);
    if (after_->region_bytes() > region_.memory->size_bytes()) region_.grow(after_->region_bytes());
    const std::uint64_t file = after_->file_bytes().value_or(after_->region_bytes());
    const std::uint64_t was = region_.file_bytes().value_or(region_.memory->size_bytes());
    if (file > was) region_.resize_file(file, 0);
    for (std::size_t at = 0; at < pages.size();) at += take(pages, at);
    if (file < was) region_.resize_file(file, 0);
  }

 private:
  std::shared_ptr<store::PageSource> open(const store::KeptVersion& kept) const {
    return store::PageSource::open(*region_.core, kept.version.version, kept.version.commits,
                                   kept.version.label);
  }

  // Copies adjacent pages from pages[at] on; returns their number.
  std::size_t take(const std::vector<PageNumber>& pages, std::size_t at) {
    assert(at < pages.size());
    std::size_t count = 1;
    while (count < kMaxPages && at + count < pages.size() &&
           pages[at + count] == pages[at] + count) {
      ++count;
    }
    const PageNumber first = pages[at], end = region_.end_page();
    if (first < end) write(first, std::min<std::size_t>(count, end - first));
    return count;
  }

  void write(PageNumber first, std::size_t count) {
    assert(count <= kMaxPages && first + count <= region_.end_page());
    after_->read(first, count, buffer_.data());
    std::byte* const to = region_.memory->data() + first * kPageBytes;
    region_.make_present(first, count);
    region_.memory->hold(first, count);
    for (std::size_t i = 0; i < count; ++i) {
      std::byte* const page = to + i * kPageBytes;
      const std::byte* const content = buffer_.data() + i * kPageBytes;
      if (std::memcmp(page, content, kPageBytes) == 0) continue;
      std::memcpy(page, content, kPageBytes);
      if (region_.cards) vellum_mark(page, kPageBytes);
    }
    region_.memory->release(first, count);
  }

  region::RegionAccess::Impl& region_;
  const store::KeptVersion head_, wanted_;
  const std::shared_ptr<store::PageSource> before_, after_;
  std::vector<std::byte> buffer_;
};

}  // namespace

CommitReport Region::checkout(const std::string& version, const std::string& message) {
  const region::WriterCall call(impl_);
  impl_->require_no_transaction("checkout()");
  impl_->writer->require_in_place();
  const std::string name = StoreAccess::handle_of(impl_->core).resolve(version);
  static_cast<void>(store::resolve_version(*impl_->core, name));  // Errc::not_found
  impl_->rollback();
  try {
    Checkout(*impl_, name).run();
    return impl_->commit({}, message.empty() ? "checkout of " + name : message);
  } catch (...) {
    impl_->rollback();
    throw;
  }
}

}  // namespace vellum
