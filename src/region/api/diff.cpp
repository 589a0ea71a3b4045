// The difference of two versions, with the bytes of both (vellum/store.hpp).
#include <algorithm>
#include <cassert>
#include <vector>
#include <vellum/store.hpp>

#include "base/fail.hpp"
#include "region/api/store_impl.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/page_map/diff.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum {
namespace {

using format::kPageBytes;
constexpr std::uint64_t kMaxBytes = 1 << 20;  // of one visit

std::shared_ptr<store::PageSource> open_source(store::StoreDirectory& core,
                                               const store::ResolvedVersion& version) {
  return store::PageSource::open(core, version.version, version.commits, version.label);
}

// Widens ranges to whole units, joins those that then touch, and visits them with their bytes.
class Widener {
 public:
  Widener(const store::PageSource& a, const store::PageSource& b, const DiffOptions& options,
          const std::function<void(const DiffRange&)>& visit)
      : a_(a),
        b_(b),
        unit_(options.granularity_bytes),
        visit_(visit),
        end_(std::max(a.region_bytes(), b.region_bytes())) {}

  void add(const ByteRange& range) {
    assert(unit_ != 0 && range.length_bytes != 0);
    assert(range.offset_bytes + range.length_bytes <= end_);
    const std::uint64_t from = range.offset_bytes / unit_ * unit_;
    assert(from >= from_);
    const std::uint64_t past = range.offset_bytes + range.length_bytes;
    const std::uint64_t rest = past % unit_;
    const std::uint64_t to = rest == 0 ? past : past + std::min(unit_ - rest, end_ - past);
    if (to_ < from || to_ == 0) {
      flush();
      from_ = from;
    }
    to_ = to;
  }
  void flush() {
    // Parts end where units end, unless one unit is larger than a part.
    const std::uint64_t most = std::max(kMaxBytes / unit_ * unit_, unit_);
    while (from_ < to_) {
      const std::uint64_t bytes = std::min(most, to_ - from_);
      visit_({{from_, bytes}, read(a_, bytes, bytes_a_), read(b_, bytes, bytes_b_)});
      from_ += bytes;
    }
    from_ = to_ = 0;
  }

 private:
  const std::byte* read(const store::PageSource& source, std::uint64_t bytes,
                        std::vector<std::byte>& out) const {
    const std::uint64_t first = from_ / kPageBytes;
    const std::uint64_t pages = (from_ + bytes + kPageBytes - 1) / kPageBytes - first;
    out.resize(static_cast<std::size_t>(pages * kPageBytes));
    source.read(first, static_cast<std::size_t>(pages), out.data());
    return out.data() + from_ % kPageBytes;
  }

  const store::PageSource& a_;
  const store::PageSource& b_;
  const std::uint64_t unit_;
  const std::function<void(const DiffRange&)>& visit_;
  const std::uint64_t end_;
  std::uint64_t from_ = 0, to_ = 0;  // the next range to visit; to_ 0: none
  std::vector<std::byte> bytes_a_, bytes_b_;
};

}  // namespace

DiffTotals Store::diff(const std::string& a, const std::string& b, const DiffOptions& options,
                       const std::function<void(const DiffRange&)>& visit) const {
  if (options.granularity_bytes == 0 || options.granularity_bytes > kMaxBytes) {
    fail(Errc::invalid_argument, "granularity_bytes {} is not in [1, {}]",
         options.granularity_bytes, kMaxBytes);
  }
  const auto va = store::resolve_kept(*impl_->core, resolve(a));
  const auto vb = store::resolve_kept(*impl_->core, resolve(b));
  const auto source_a = open_source(*impl_->core, va.version);
  const auto source_b = open_source(*impl_->core, vb.version);
  Widener widener(*source_a, *source_b, options, visit);
  const auto totals = store::diff_versions(*impl_->core, va.version, vb.version,
                                           [&](const ByteRange& range) { widener.add(range); });
  widener.flush();
  return totals;
}

}  // namespace vellum
