#include "cli/history/blame.hpp"

#include <algorithm>

#include "format/wire/types.hpp"

namespace vellum::cli {
namespace {

using format::kPageBytes;

std::uint64_t end_of(const ByteRange& range) { return range.offset_bytes + range.length_bytes; }

ByteRange whole_pages(const ByteRange& range) {
  const std::uint64_t begin = range.offset_bytes / kPageBytes * kPageBytes;
  const std::uint64_t end = (end_of(range) + kPageBytes - 1) / kPageBytes * kPageBytes;
  return {begin, end - begin};
}

// Ranges without a version so far, ascending. Changes are removed in ascending order; rounding to
// pages may make a change begin at the end of the previous one, or earlier.
class Unexplained {
 public:
  explicit Unexplained(const ByteRange& range) : left_{range} {}

  bool empty() const { return left_.empty(); }
  const std::vector<ByteRange>& ranges() const { return left_; }

  // Starts with the changes of one version.
  void begin() { next_ = 0, rest_.clear(); }

  void take(const ByteRange& change, std::size_t version, std::vector<Blamed>& out) {
    while (next_ < left_.size() && end_of(left_[next_]) <= change.offset_bytes)
      rest_.push_back(left_[next_++]);
    while (next_ < left_.size() && left_[next_].offset_bytes < end_of(change)) {
      ByteRange& range = left_[next_];
      const std::uint64_t begin = std::max(range.offset_bytes, change.offset_bytes);
      const std::uint64_t end = std::min(end_of(range), end_of(change));
      if (range.offset_bytes < begin)
        rest_.push_back({range.offset_bytes, begin - range.offset_bytes});
      out.push_back({{begin, end - begin}, version});
      if (end == end_of(range)) {
        ++next_;
        continue;
      }
      range = {end, end_of(range) - end};
      break;
    }
  }

  void end() {
    rest_.insert(rest_.end(), left_.begin() + static_cast<std::ptrdiff_t>(next_), left_.end());
    left_.swap(rest_);
  }

 private:
  std::vector<ByteRange> left_, rest_;
  std::size_t next_ = 0;
};

std::vector<Blamed> joined(std::vector<Blamed> all) {
  std::sort(all.begin(), all.end(), [](const Blamed& a, const Blamed& b) {
    return a.range.offset_bytes < b.range.offset_bytes;
  });
  std::vector<Blamed> out;
  for (const Blamed& b : all) {
    const bool joins = !out.empty() && out.back().version == b.version &&
                       end_of(out.back().range) == b.range.offset_bytes;
    if (joins) {
      out.back().range.length_bytes += b.range.length_bytes;
    } else {
      out.push_back(b);
    }
  }
  return out;
}

}  // namespace

std::vector<Blamed> blame(const Store& store, const std::vector<VersionInfo>& versions,
                          const ByteRange& range, bool pages, const ProgressFn& progress) {
  std::vector<Blamed> out;
  Unexplained left(range);
  for (std::size_t i = versions.size() - 1; i > 0 && !left.empty(); --i) {
    if (progress) progress({versions.size() - 1 - i, versions.size() - 1, "versions"});
    left.begin();
    store.diff(versions[i - 1].name, versions[i].name, [&](const ByteRange& change) {
      left.take(pages ? whole_pages(change) : change, i, out);
    });
    left.end();
  }
  for (const ByteRange& r : left.ranges()) out.push_back({r, 0});
  return joined(std::move(out));
}

}  // namespace vellum::cli
