#include "memory/paged/range_loader.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <mutex>

#include "base/threads/thread_pool.hpp"
#include "memory/paged/fill/chunk_filler.hpp"
#include "memory/paged/fill/version_sharing.hpp"

namespace vellum::region {
namespace {

using format::PageRange;

constexpr std::size_t kWorthThreads = 2 * kTablePages;
constexpr std::size_t kMaxFetchPages = (256u << 20) / kPageBytes;

}  // namespace

bool RangeLoader::is_worth_threads(std::size_t pages) noexcept { return pages >= kWorthThreads; }

// Each unit is within the range of one page table.
std::vector<PageRange> RangeLoader::units_of(std::span<const PageRange> ranges) {
  std::vector<PageRange> out;
  for (const PageRange& range : ranges) {
    const PageNumber end = range.first + range.count;
    for (PageNumber at = range.first; at < end;) {
      const PageNumber to = std::min<PageNumber>(end, (at / kTablePages + 1) * kTablePages);
      out.push_back({at, to - at});
      at = to;
    }
  }
  return out;
}

// How many pages would be filled; a chunk may count several times.
std::size_t RangeLoader::missing_pages(std::span<const PageRange> ranges) const noexcept {
  std::size_t pages = 0;
  for (const PageRange& range : ranges) {
    const std::size_t last = state_.chunk_of(range.first + range.count - 1);
    for (std::size_t index = state_.chunk_of(range.first); index <= last; ++index) {
      if (state_.chunks.is_missing(index)) pages += state_.pages_of(index);
    }
  }
  return pages;
}

// Whole chunks, within the size, in the order of the units; a chunk may occur several times.
std::vector<PageRange> RangeLoader::missing_in(std::span<const PageRange> units) const {
  std::vector<PageRange> out;
  for (const PageRange& unit : units) {
    const std::size_t last = state_.chunk_of(unit.first + unit.count - 1);
    for (std::size_t index = state_.chunk_of(unit.first); index <= last; ++index) {
      const PageNumber first = index * state_.chunk_pages();
      if (!state_.chunks.is_missing(index)) continue;
      if (!out.empty() && out.back().first + out.back().count == first) {
        out.back().count += state_.pages_of(index);
      } else {
        out.push_back({first, state_.pages_of(index)});
      }
    }
  }
  return out;
}

bool RangeLoader::may_be_remote() const noexcept {
  const LiveSourceReader source(state_.source);
  return source.get() != nullptr && source->may_be_remote();
}

std::shared_ptr<const void> RangeLoader::fetch_early(std::span<const PageRange> units) const {
  const LiveSourceReader source(state_.source);
  if (source.get() == nullptr || !source->may_be_remote()) return nullptr;
  return source->fetch_early(missing_in(units));
}

bool RangeLoader::load_units(std::span<const PageRange> units, store::ReadFailure& failure) {
  std::mutex mutex;  // guards `failure` and `ok`
  bool ok = true;
  base::ThreadPool pool(base::processors() - 1);
  pool.parallel_for(units.size(), [&](std::size_t i, std::size_t) {
    {
      const std::lock_guard lock(mutex);
      if (!ok) return;
    }
    store::ReadFailure found;
    const bool loaded = load_chunks(units[i].first, units[i].count, found);
    if (!state_.options.writable) state_.backing.unmap_alias(units[i].first, units[i].count);
    if (loaded) return;
    const std::lock_guard lock(mutex);
    if (ok) failure = found;
    ok = false;
  });
  return ok;
}

bool RangeLoader::load(std::span<const PageRange> ranges, store::ReadFailure& failure) {
  const std::size_t missing = missing_pages(ranges);
  const bool ok = is_worth_threads(missing) || (missing != 0 && may_be_remote())
                      ? load_ranges(ranges, failure)
                      : std::ranges::all_of(ranges, [&](const PageRange& range) {
                          return load_chunks(range.first, range.count, failure);
                        });
  state_.note_memory();
  return ok;
}

bool RangeLoader::load_ranges(std::span<const PageRange> ranges, store::ReadFailure& failure) {
  const std::vector<PageRange> units = units_of(ranges);
  bool ok = true;
  for (std::span<const PageRange> rest(units); ok && !rest.empty();) {
    std::size_t count = 0;
    for (std::size_t pages = 0; count < rest.size() && pages < kMaxFetchPages; ++count) {
      pages += std::max<std::size_t>(rest[count].count, state_.chunk_pages());
    }
    const auto early = fetch_early(rest.first(count));
    ok = load_units(rest.first(count), failure);
    rest = rest.subspan(count);
  }
  return ok;
}

bool RangeLoader::load(PageNumber first, std::size_t count, store::ReadFailure& failure) noexcept {
  if (count == 0) return true;
  const bool ok = load_all(first, count, failure);
  state_.note_memory();
  return ok;
}

bool RangeLoader::load_all(PageNumber first, std::size_t count,
                           store::ReadFailure& failure) noexcept {
  try {
    const PageRange all[] = {{first, count}};
    if (is_worth_threads(count)) return load_units(units_of(all), failure);
  } catch (const std::exception&) {  // no memory for threads
  }
  return load_chunks(first, count, failure);
}

bool RangeLoader::load_chunks(PageNumber first, std::size_t count,
                              store::ReadFailure& failure) noexcept {
  assert(count != 0);  // a concurrent rollback may make the region smaller
  if (state_.options.shared) sharing_.load_range(first, count);
  const std::size_t last = state_.chunk_of(first + count - 1);
  for (std::size_t index = state_.chunk_of(first); index <= last; ++index) {
    if (!filler_.fill(index, failure) || !filler_.fill_rest(index, failure) ||
        !filler_.map_all(index, failure))
      return false;
  }
  return true;
}

}  // namespace vellum::region
