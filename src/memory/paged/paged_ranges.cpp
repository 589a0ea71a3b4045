// A program brings in several ranges, or a large one: by units, all processors at once.
//
// Of a version at a remote, all that is missing is asked for first, so that the network is waited for
// once, and not again and again.
#include <algorithm>
#include <mutex>

#include "base/threads/processors.hpp"
#include "memory/paged/paged_memory.hpp"

namespace vellum::region {
namespace {

using format::PageRange;

constexpr std::size_t kWorthThreads = 2 * kTablePages;
constexpr std::size_t kMaxPagesEarly = (256u << 20) / kPageBytes;

}  // namespace

bool PagedMemory::is_worth_threads(std::size_t pages) noexcept { return pages >= kWorthThreads; }

// Each lies in the range of one page table.
PagedMemory::Ranges PagedMemory::units_of(std::span<const PageRange> ranges) {
  Ranges out;
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

// How many pages would come in; a chunk may count several times.
std::size_t PagedMemory::missing_pages(std::span<const PageRange> ranges) const noexcept {
  std::size_t pages = 0;
  for (const PageRange& range : ranges) {
    const std::size_t last = chunk_of(range.first + range.count - 1);
    for (std::size_t index = chunk_of(range.first); index <= last; ++index) {
      if (chunks_.is_missing(index)) pages += pages_of(index);
    }
  }
  return pages;
}

// Whole chunks, within the size, in the order of the units; a chunk may be there several times.
PagedMemory::Ranges PagedMemory::missing_in(std::span<const PageRange> units) const {
  Ranges out;
  for (const PageRange& unit : units) {
    const std::size_t last = chunk_of(unit.first + unit.count - 1);
    for (std::size_t index = chunk_of(unit.first); index <= last; ++index) {
      const PageNumber first = index * chunk_pages();
      if (!chunks_.is_missing(index)) continue;
      if (!out.empty() && out.back().first + out.back().count == first) {
        out.back().count += pages_of(index);
      } else {
        out.push_back({first, pages_of(index)});
      }
    }
  }
  return out;
}

bool PagedMemory::may_be_remote() const noexcept {
  const LiveSource::Use source(source_);
  return source.get() != nullptr && source->may_be_remote();
}

std::shared_ptr<const void> PagedMemory::fetch_early(std::span<const PageRange> units) const {
  const LiveSource::Use source(source_);
  if (source.get() == nullptr || !source->may_be_remote()) return nullptr;
  return source->fetch_early(missing_in(units));
}

bool PagedMemory::make_units_present(std::span<const PageRange> units,
                                     store::ReadFailure& failure) {
  std::mutex mutex;  // guards `failure` and `ok`
  bool ok = true;
  base::ThreadPool pool(base::processors() - 1);
  pool.parallel_for(units.size(), [&](std::size_t i, std::size_t) {
    {
      const std::lock_guard lock(mutex);
      if (!ok) return;
    }
    store::ReadFailure found;
    const bool made = make_chunks_present(units[i].first, units[i].count, found);
    if (!options_.writable) backing_.unmap_alias(units[i].first, units[i].count);
    if (made) return;
    const std::lock_guard lock(mutex);
    if (ok) failure = found;
    ok = false;
  });
  return ok;
}

bool PagedMemory::make_present(std::span<const PageRange> ranges, store::ReadFailure& failure) {
  const std::size_t missing = missing_pages(ranges);
  const bool ok = is_worth_threads(missing) || (missing != 0 && may_be_remote())
                      ? make_ranges_present(ranges, failure)
                      : std::ranges::all_of(ranges, [&](const PageRange& range) {
                          return make_chunks_present(range.first, range.count, failure);
                        });
  note_memory();
  return ok;
}

bool PagedMemory::make_ranges_present(std::span<const PageRange> ranges,
                                      store::ReadFailure& failure) {
  const Ranges units = units_of(ranges);
  bool ok = true;
  for (std::span<const PageRange> rest(units); ok && !rest.empty();) {
    std::size_t count = 0;
    for (std::size_t pages = 0; count < rest.size() && pages < kMaxPagesEarly; ++count) {
      pages += std::max<std::size_t>(rest[count].count, chunk_pages());
    }
    const auto early = fetch_early(rest.first(count));
    ok = make_units_present(rest.first(count), failure);
    rest = rest.subspan(count);
  }
  return ok;
}

}  // namespace vellum::region
