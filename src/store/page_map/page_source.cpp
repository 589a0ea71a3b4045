// store/page_map/page_source.cpp: opening a version, and queries of its page map.
// page_source_read.cpp reads pages.
#include "store/page_map/page_source.hpp"

#include <algorithm>
#include <cassert>

#include "base/fail.hpp"
#include "store/packs/record/pack_store.hpp"
#include "store/page_map/page_source_state.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::MapEntry;
using format::PageKind;
using format::PageNumber;

const MapEntry* first_reaching(std::span<const MapEntry> entries, PageNumber page) noexcept {
  const auto at = std::partition_point(entries.begin(), entries.end(),
                                       [&](const MapEntry& e) { return e.page + e.count <= page; });
  return entries.data() + (at - entries.begin());
}

PageSource::PageSource() : impl_(std::make_unique<Impl>()) {}
PageSource::~PageSource() = default;

std::shared_ptr<PageSource> PageSource::open(PackStore& store, const format::Version& version,
                                             std::vector<format::CommitBody> commits,
                                             std::string label) {
  std::shared_ptr<PageSource> source(new PageSource());
  Impl& s = *source->impl_;
  s.store = &store;
  s.records = &store.records();
  s.label = std::move(label);
  s.packs_directory = store.packs_directory();
  with_context(s.label, [&] {
    const format::CommitInfo& head = format::head_info(version, commits);
    s.region_bytes = head.region_bytes;
    s.file_bytes = head.file_bytes;
    store.packs().learn(version);
    s.runs.reserve(version.runs.size());
    for (const auto& run : version.runs) s.runs.push_back(load_run(store, run));
    check_raw_bytes(commits, store.superblock().journal_half_bytes);
    s.overlay = Overlay(std::move(commits));
    assert(s.runs.size() == version.runs.size());
  });
  return source;
}

void PageSource::keep(VersionPin version_pin) noexcept {
  impl_->version_pin = std::move(version_pin);
}

const std::string& PageSource::label() const noexcept { return impl_->label; }
std::uint64_t PageSource::region_bytes() const noexcept { return impl_->region_bytes; }
std::optional<std::uint64_t> PageSource::file_bytes() const noexcept { return impl_->file_bytes; }
bool PageSource::mentions_nothing() const noexcept {
  return impl_->runs.empty() && impl_->overlay.empty();
}

namespace {

// How many pages from `first` on have no entry in this run. 0: `out` is its entry for `first`, or has
// count 0 if the block could not be read.
std::uint64_t next_entry(const PageSourceState& s, const LoadedRun& run, PageNumber first,
                         MapEntry& out) noexcept {
  const std::size_t b = run.block_from(first);
  if (b == run.root.blocks.size()) return UINT64_MAX;
  if (run.root.blocks[b].first_page > first) return run.root.blocks[b].first_page - first;
  out.count = 0;
  RecordCache::View view;
  ReadFailure ignored;  // reading the page will meet the failure again
  if (!get_block(*s.records, run, b, view, ignored)) return 0;
  const MapEntry* const e = first_reaching(view.entries(), first);
  assert(e != view.entries().data() + view.entries().size());  // block_from() checked its last page
  if (e->page > first) return e->page - first;
  out = *e;
  return 0;
}

}  // namespace

std::size_t PageSource::zeros_from(PageNumber first, std::size_t limit) const noexcept {
  const PageSourceState& s = *impl_;
  const std::uint64_t pages = s.region_bytes / kPageBytes;
  if (first >= pages) return limit;
  std::uint64_t bound = limit;
  if (const Overlay::Line* line = s.overlay.next(first)) {
    if (line->page == first) {
      if (line->type != format::PartType::zeros) return 0;
      std::uint64_t n = 1;  // a commit lists zero pages one by one
      const Overlay::Line* const end = s.overlay.lines().data() + s.overlay.lines().size();
      while (n < bound && line + n != end && line[n].page == first + n &&
             line[n].type == format::PartType::zeros) {
        ++n;
      }
      return static_cast<std::size_t>(std::min(n, bound));
    }
    bound = std::min(bound, line->page - first);
  }
  for (const auto& run : s.runs) {
    MapEntry e;
    const std::uint64_t gap = next_entry(s, *run, first, e);
    if (gap == 0) {
      if (e.count == 0 || e.kind != PageKind::zero) return 0;
      bound = std::min<std::uint64_t>(bound, e.page + e.count - first);
      break;  // it hides the entries of older runs
    }
    bound = std::min(bound, gap);
  }
  if (bound >= pages - first) return limit;  // all pages past the end are zero, too
  return static_cast<std::size_t>(bound);
}

std::vector<MapEntry> PageSource::chain(PageNumber page) const {
  std::vector<MapEntry> out;
  for (const auto& run : impl_->runs) {
    const std::size_t b = run->block_from(page);
    if (b == run->root.blocks.size() || run->root.blocks[b].first_page > page) continue;
    RecordCache::View view;
    ReadFailure failure;
    if (!get_block(*impl_->records, *run, b, view, failure)) {
      failure.page = page;
      raise(failure);
    }
    const auto entries = view.entries();
    for (const MapEntry* e = first_reaching(entries, page);
         e != entries.data() + entries.size() && e->page <= page; ++e) {
      MapEntry one = *e;
      if (one.kind == PageKind::base) one.slot += static_cast<std::uint32_t>(page - e->page);
      one.page = page;
      one.count = 1;
      if (!out.empty() && out.back().depth != one.depth + 1) {
        view.release();
        raise({"the page's delta chain is broken", one.record, page, 0});
      }
      out.push_back(one);
      if (one.kind != PageKind::delta) return out;
    }
  }
  if (!out.empty() && out.back().depth != 1) {
    raise({"the page's delta chain has no end", out.back().record, page, 0});
  }
  return out;
}

void PageSource::depths(PageNumber first, std::span<std::uint8_t> out) const {
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  const PageNumber end = first + out.size();
  // From the oldest run to the newest: each overwrites the older ones.
  for (auto run = impl_->runs.rbegin(); run != impl_->runs.rend(); ++run) {
    const auto& blocks = (*run)->root.blocks;
    for (std::size_t b = (*run)->block_from(first); b < blocks.size() && blocks[b].first_page < end;
         ++b) {
      RecordCache::View view;
      ReadFailure failure;
      if (!get_block(*impl_->records, **run, b, view, failure)) {
        failure.page = std::max(first, blocks[b].first_page);
        raise(failure);
      }
      const auto entries = view.entries();
      for (auto e = entries.rbegin(); e != entries.rend(); ++e) {
        const PageNumber from = std::max(first, e->page);
        const PageNumber to = std::min(end, e->page + e->count);
        for (PageNumber page = from; page < to; ++page) out[page - first] = e->depth;
      }
    }
  }
}

std::vector<PageSource::OverlaidPage> PageSource::overlaid_pages() const {
  std::vector<OverlaidPage> out;
  for (const Overlay::Line& line : impl_->overlay.lines()) {
    if (!out.empty() && out.back().page == line.page) continue;  // the first is the newest
    out.push_back({line.page, line.type == format::PartType::zeros});
  }
  return out;
}

std::vector<MapEntry> PageSource::run_entries(std::size_t run) const {
  assert(run < impl_->runs.size());
  return with_context(impl_->label, [&] { return read_entries(*impl_->store, *impl_->runs[run]); });
}

}  // namespace vellum::store
