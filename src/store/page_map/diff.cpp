#include "store/page_map/diff.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "store/packs/record/pack_store.hpp"
#include "store/page_map/run_builder.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::MapEntry;
using format::PageKind;
using format::PageNumber;

namespace {

using format::PageRange;

// The position of one side in its merged entries.
struct Side {
  std::vector<MapEntry> entries;
  std::size_t at = 0;
  PageNumber from = 0;

  bool done() const { return at == entries.size(); }
  PageNumber page() const { return done() ? UINT64_MAX : std::max(entries[at].page, from); }
  PageNumber end() const {
    assert(!done());
    return entries[at].page + entries[at].count;
  }
  bool lone_extent() const {
    return entries[at].kind != PageKind::delta;  // a base below a delta follows that delta
  }
  void skip_to(PageNumber page) {
    from = page;
    while (!done() && end() <= from) ++at;
  }
};

bool same_extent(const Side& a, const Side& b, PageNumber page) {
  const MapEntry& x = a.entries[a.at];
  const MapEntry& y = b.entries[b.at];
  assert(x.page <= page && y.page <= page);
  if (x.kind != y.kind) return false;
  return x.kind == PageKind::zero ||
         (x.record == y.record && x.slot + (page - x.page) == y.slot + (page - y.page));
}

// Compares the chains of one page, down to the end of both sides' entries. Below that, both versions
// share all runs.
bool same_chain(const Side& a, const Side& b, PageNumber page) {
  const auto line = [page](const Side& s, std::size_t i, MapEntry& out) {
    if (i >= s.entries.size() || s.entries[i].page > page) return false;
    out = s.entries[i];
    if (out.kind == PageKind::base) out.slot += static_cast<std::uint32_t>(page - out.page);
    out.page = page;
    out.count = 1;
    return true;
  };
  for (std::size_t i = 0;; ++i) {
    MapEntry x, y;
    const bool has_x = line(a, a.at + i, x);
    const bool has_y = line(b, b.at + i, y);
    if (has_x != has_y || (has_x && x != y)) return false;
    if (!has_x || x.kind != PageKind::delta) return true;
  }
}

// The merged entries of the runs that only this version has.
Side own_entries(const PageSource& source, std::size_t runs, bool all) {
  std::vector<std::vector<MapEntry>> entries;
  entries.reserve(runs);
  for (std::size_t r = 0; r < runs; ++r) entries.push_back(source.run_entries(r));
  return {merge_runs(entries, all), 0, 0};
}

void add_range(std::vector<PageRange>& out, PageNumber first, std::uint64_t count) {
  if (!out.empty() && out.back().first + out.back().count == first) {
    out.back().count += count;
  } else {
    out.push_back({first, count});
  }
}

std::vector<PageRange> ranges_in_runs(const PageSource& a, const format::Version& va,
                                      const PageSource& b, const format::Version& vb) {
  // Count the runs that both versions have beneath their own.
  std::size_t shared = 0;
  while (shared < va.runs.size() && shared < vb.runs.size() &&
         va.runs[va.runs.size() - 1 - shared] == vb.runs[vb.runs.size() - 1 - shared]) {
    ++shared;
  }
  Side x = own_entries(a, va.runs.size() - shared, shared == 0);
  Side y = own_entries(b, vb.runs.size() - shared, shared == 0);
  std::vector<PageRange> out;
  while (!x.done() || !y.done()) {
    const PageNumber page = std::min(x.page(), y.page());
    std::uint64_t count = 1;
    bool same = false;
    if (x.page() != y.page()) {
      const Side& only = x.page() == page ? x : y;
      const Side& other = x.page() == page ? y : x;
      count = std::min(only.end(), other.page()) - page;
    } else if (x.lone_extent() && y.lone_extent()) {
      count = std::min(x.end(), y.end()) - page;
      same = same_extent(x, y, page);
    } else {
      same = same_chain(x, y, page);
    }
    assert(count >= 1);
    if (!same) add_range(out, page, count);
    x.skip_to(page + count);
    y.skip_to(page + count);
  }
  return out;
}

}  // namespace

std::vector<PageRange> ranges_that_may_differ(const PageSource& a, const ResolvedVersion& va,
                                              const PageSource& b, const ResolvedVersion& vb) {
  std::vector<PageRange> ranges = ranges_in_runs(a, va.version, b, vb.version);
  for (const auto& p : a.overlaid_pages()) ranges.push_back({p.page, 1});
  for (const auto& p : b.overlaid_pages()) ranges.push_back({p.page, 1});
  std::sort(ranges.begin(), ranges.end(),
            [](const PageRange& l, const PageRange& r) { return l.first < r.first; });
  const std::uint64_t limit = std::max(a.region_bytes(), b.region_bytes()) / kPageBytes;
  std::vector<PageRange> out;
  PageNumber end = 0;
  for (const PageRange& r : ranges) {
    const PageNumber first = std::max(r.first, end);
    const PageNumber stop = std::min(limit, r.first + r.count);
    if (first >= stop) continue;
    add_range(out, first, stop - first);
    end = stop;
  }
  return out;
}

namespace {

// Joins adjacent ranges of differing bytes, also across pages.
class RangeJoiner {
 public:
  RangeJoiner(const std::function<void(const ByteRange&)>& visit, DiffTotals& totals)
      : visit_(visit), totals_(totals) {}
  void add(std::uint64_t offset, std::uint64_t length) {
    if (open_.length_bytes != 0 && open_.offset_bytes + open_.length_bytes == offset) {
      open_.length_bytes += length;
      return;
    }
    assert(length != 0 && offset >= open_.offset_bytes + open_.length_bytes);
    flush();
    open_ = {offset, length};
  }
  void flush() {
    if (open_.length_bytes == 0) return;
    ++totals_.ranges;
    totals_.bytes_different += open_.length_bytes;
    if (visit_) visit_(open_);
    open_ = {};
  }

 private:
  const std::function<void(const ByteRange&)>& visit_;
  DiffTotals& totals_;
  ByteRange open_;
};

void compare_page(const std::byte* a, const std::byte* b, std::uint64_t offset,
                  RangeJoiner& joiner) {
  constexpr std::size_t kStep = 64;
  for (std::size_t line = 0; line < kPageBytes; line += kStep) {
    if (std::memcmp(a + line, b + line, kStep) == 0) continue;
    for (std::size_t i = line; i < line + kStep;) {
      if (a[i] == b[i]) {
        ++i;
        continue;
      }
      const std::size_t start = i;
      while (i < line + kStep && a[i] != b[i]) ++i;
      joiner.add(offset + start, i - start);
    }
  }
}

class Comparer {
 public:
  Comparer(const PageSource& a, const PageSource& b,
           const std::function<void(const ByteRange&)>& visit)
      : a_(a), b_(b), joiner_(visit, totals_) {}

  void compare(const PageRange& range) {
    const PageNumber end = range.first + range.count;
    for (PageNumber page = range.first; page < end;) {
      const auto left = static_cast<std::size_t>(end - page);
      const std::size_t zeros = std::min(a_.zeros_from(page, left), b_.zeros_from(page, left));
      if (zeros > 0) {
        page += zeros;
        continue;
      }
      const std::size_t n = std::min(left, kPagesAtOnce);
      a_.read(page, n, buffer_a_.data());
      b_.read(page, n, buffer_b_.data());
      for (std::size_t i = 0; i < n; ++i) {
        const std::byte* x = buffer_a_.data() + i * kPageBytes;
        const std::byte* y = buffer_b_.data() + i * kPageBytes;
        ++totals_.pages_compared;
        if (std::memcmp(x, y, kPageBytes) == 0) continue;
        ++totals_.pages_different;
        compare_page(x, y, (page + i) * kPageBytes, joiner_);
      }
      page += n;
    }
  }
  DiffTotals finish() {
    joiner_.flush();
    return totals_;
  }

 private:
  static constexpr std::size_t kPagesAtOnce = 16;
  const PageSource& a_;
  const PageSource& b_;
  DiffTotals totals_;
  RangeJoiner joiner_;
  std::vector<std::byte> buffer_a_ = std::vector<std::byte>(kPagesAtOnce * kPageBytes);
  std::vector<std::byte> buffer_b_ = std::vector<std::byte>(kPagesAtOnce * kPageBytes);
};

std::shared_ptr<PageSource> open_source(PackStore& store, const ResolvedVersion& v) {
  return PageSource::open(store, v.version, v.commits, v.label + " of " + store.path());
}

}  // namespace

DiffTotals diff_versions(PackStore& store, const ResolvedVersion& a, const ResolvedVersion& b,
                         const std::function<void(const ByteRange&)>& visit) {
  const auto source_a = open_source(store, a);
  const auto source_b = open_source(store, b);
  Comparer comparer(*source_a, *source_b, visit);
  for (const PageRange& range : ranges_that_may_differ(*source_a, a, *source_b, b)) {
    comparer.compare(range);
  }
  return comparer.finish();
}

std::vector<PageNumber> pages_that_may_differ(const PageSource& a, const ResolvedVersion& va,
                                              const PageSource& b, const ResolvedVersion& vb) {
  std::vector<PageNumber> pages;
  for (const PageRange& range : ranges_that_may_differ(a, va, b, vb)) {
    for (std::uint64_t i = 0; i < range.count; ++i) pages.push_back(range.first + i);
  }
  return pages;
}

}  // namespace vellum::store
