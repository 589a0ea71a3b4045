#include "remote/objects/order_set.hpp"

#include <algorithm>

#include "format/version.hpp"

namespace vellum::remote {
namespace {

constexpr std::size_t kMinRangeBytes = 2;
constexpr std::uint64_t kMax = format::kMaxSnapshotOrder;

}  // namespace

bool OrderSet::contains(std::uint64_t order) const noexcept {
  const auto at = std::ranges::lower_bound(ranges_, order, {}, &OrderRange::last);
  return at != ranges_.end() && at->first <= order;
}

void OrderSet::add(std::uint64_t order) {
  if (contains(order)) return;
  auto at = std::ranges::lower_bound(ranges_, order, {}, &OrderRange::last);
  at = ranges_.insert(at, {order, order});
  if (const auto next = at + 1; next != ranges_.end() && next->first == order + 1) {
    at->last = next->last;
    at = ranges_.erase(next) - 1;
  }
  if (at != ranges_.begin() && (at - 1)->last + 1 == order) {
    (at - 1)->last = at->last;
    ranges_.erase(at);
  }
}

// For each range: the gap before it minus 1, and its number of orders minus 1.
void OrderSet::write(format::ByteWriter& w) const {
  w.varint(ranges_.size());
  std::uint64_t end = 0;
  for (const OrderRange& range : ranges_) {
    w.varint(range.first - end - 1);
    w.varint(range.last - range.first);
    end = range.last + 1;
  }
}

bool OrderSet::read(format::ByteReader& in) {
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > in.left() / kMinRangeBytes) return false;
  ranges_.clear();
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t gap = in.varint(), more = in.varint();
    if (!in.ok() || end >= kMax || gap >= kMax - end) return false;
    const std::uint64_t first = end + gap + 1;
    if (more > kMax - first) return false;
    ranges_.push_back({first, first + more});
    end = first + more + 1;
  }
  return true;
}

}  // namespace vellum::remote
