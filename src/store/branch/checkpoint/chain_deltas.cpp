#include "store/branch/checkpoint/chain_deltas.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "store/catalog/store_directory.hpp"
#include "store/packs/record/record_cache.hpp"

namespace vellum::store {

using format::MapEntry;
using format::PageKind;
using format::PageNumber;
using format::RecordRef;
using format::RecordType;

namespace {

// Records of one task. The copies of their deltas share a buffer.
constexpr std::size_t kRecordsPerTask = 16;

}  // namespace

MapEntry take_base(std::vector<MapEntry>& chain, PageNumber page) {
  if (chain.empty() || chain.back().kind == PageKind::delta) {
    return {page, 1, 0, PageKind::zero, 0, {}};
  }
  assert(chain.back().page == page);
  const MapEntry base = chain.back();
  chain.pop_back();
  return base;
}

ChainDeltas::ChainDeltas(StoreDirectory& store, const PageSource& version,
                         std::span<const PageNumber> pages, EncodingThreads& threads) {
  first_link_.reserve(pages.size() + 1);
  bases_.reserve(pages.size());
  for (const PageNumber page : pages) {
    first_link_.push_back(links_.size());
    auto chain = version.chain(page);
    bases_.push_back(take_base(chain, page));
    const auto index = static_cast<std::uint32_t>(bases_.size() - 1);
    for (auto e = chain.rbegin(); e != chain.rend(); ++e) {
      links_.push_back({e->record, e->slot, index});
    }
  }
  first_link_.push_back(links_.size());

  std::vector<std::uint32_t> order(links_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
    return links_[a].record < links_[b].record;
  });
  std::vector<std::size_t> records;  // where each begins in `order`
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || links_[order[i]].record != links_[order[i - 1]].record) records.push_back(i);
  }
  deltas_.resize((records.size() + kRecordsPerTask - 1) / kRecordsPerTask);
  records.push_back(order.size());
  threads.run(deltas_.size(), [&](std::size_t task, base::Compressor&) {
    const std::size_t first = task * kRecordsPerTask;
    const std::size_t end = std::min(first + kRecordsPerTask, records.size() - 1);
    for (std::size_t r = first; r < end; ++r) {
      copy(store, version, std::span(order).subspan(records[r], records[r + 1] - records[r]), pages,
           static_cast<std::uint32_t>(task));
    }
  });
}

void ChainDeltas::copy(StoreDirectory& store, const PageSource& version,
                       std::span<const std::uint32_t> links, std::span<const PageNumber> pages,
                       std::uint32_t into) {
  assert(!links.empty() && into < deltas_.size());
  const RecordRef record = links_[links.front()].record;
  RecordCache::View view;
  ReadFailure failure;
  Deltas& out = deltas_[into];
  for (const std::uint32_t l : links) {
    Link& link = links_[l];
    assert(link.record == record && link.page < pages.size());
    const PageNumber page = pages[link.page];
    if ((view.empty() || !view.holds(link.slot)) &&
        !store.records().get({record, RecordType::deltas, {}, {link.slot, 1}}, view, failure)) {
      failure.page = page;
      version.raise(failure);
    }
    const auto lines = view.deltas();
    const bool there = link.slot < lines.size() && lines[link.slot].page == page;
    if (!there || !view.holds(link.slot)) {
      view.release();
      version.raise(
          {there ? "gc has freed the delta" : "the record has no such delta", record, page, 0});
    }
    link.deltas = into;
    link.first_span = out.spans.size();
    link.first_byte = out.bytes.size();
    format::expand_indexed_delta(view.raw(), lines[link.slot], out.spans, out.bytes);
    link.spans = static_cast<std::uint32_t>(out.spans.size() - link.first_span);
    link.bytes = static_cast<std::uint32_t>(out.bytes.size() - link.first_byte);
  }
}

void ChainDeltas::apply(std::size_t index, format::DeltaComposer& composer) const {
  assert(index + 1 < first_link_.size());
  for (std::size_t l = first_link_[index]; l < first_link_[index + 1]; ++l) {
    const Link& link = links_[l];
    const Deltas& from = deltas_[link.deltas];
    composer.apply(std::span(from.spans).subspan(link.first_span, link.spans),
                   std::span(from.bytes).subspan(link.first_byte, link.bytes));
  }
}

}  // namespace vellum::store
