#include "remote/engine/object_versions.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace vellum::remote {

void sort_newest_first(std::vector<ObjectVersion>& versions) {
  std::vector<std::size_t> order(versions.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](std::size_t i, std::size_t j) {
    const ObjectVersion &a = versions[i], &b = versions[j];
    return std::tuple(b.is_newest, b.put_at, i) < std::tuple(a.is_newest, a.put_at, j);
  });
  std::vector<ObjectVersion> out;
  for (const std::size_t i : order) out.push_back(std::move(versions[i]));
  versions = std::move(out);
}

void leave_out_middle(std::vector<ObjectVersion>& versions, std::optional<ServerTime> time) {
  constexpr std::ptrdiff_t kKept = 1024;
  sort_newest_first(versions);
  const auto middle = std::ranges::find_if(versions, [&](const ObjectVersion& version) {
    return time.has_value() && version.put_at <= *time;
  });
  std::vector<ObjectVersion> out;
  for (auto at = versions.begin(); at != versions.end(); ++at) {
    const bool is_kept = at - versions.begin() < kKept || versions.end() - at <= kKept ||
                         (at >= middle && at - middle < kKept);
    if (is_kept) out.push_back(std::move(*at));
  }
  versions = std::move(out);
}

}  // namespace vellum::remote
