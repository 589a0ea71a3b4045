// store/branch/fold.hpp: turns an epoch's page writes into pack records and map entries.
//
// Of each page only the net effect is written: the newest full content with later deltas applied,
// or all deltas composed into one. Chains stay short: a page whose chain has reached kMaxDeltaDepth
// gets one delta against its base, which then stands in the new run beside it and hides what lay
// between; it costs the bytes that changed since the base.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "format/types.hpp"
#include "store/branch/dedup.hpp"
#include "store/pack/pack_writer.hpp"
#include "store/page_map/depth_table.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

class StoreCore;

inline constexpr std::uint8_t kMaxDeltaDepth = 16;

// The entries of a block of pages: consecutive pages become one extent.
void append_block_entries(std::span<const format::PageNumber> pages,
                          const format::RecordRef& record, std::vector<format::MapEntry>& out);

// The block as it is, in a record of its own, and its entries.
void append_block(const PageBlock& block, PackWriter& packs, const format::Encoding& encoding,
                  Dedup& dedup, std::vector<format::MapEntry>& out);

// The same for pages that were found in the store.
void append_found_entries(std::span<const PageRef> found, std::vector<format::MapEntry>& out);

// How many deltas of a batch, from `first` on, surely fit one record or commit part.
std::size_t deltas_that_fit(const format::DeltaBatch& batch, std::size_t first) noexcept;

// Appends records for the net effect of `pieces` (oldest first), and returns the entries, by page,
// newest of a chain first. `written` are entries of records that the newest commit has already
// appended: they win over the pieces, and are part of the result. `last_folded` gives the version
// that the deltas stand on; it is called when needed. `committed` may be empty, or give the content
// of pages after the newest piece.
std::vector<format::MapEntry> fold_pieces(StoreCore& store, PackWriter& packs,
                                          const format::Encoding& encoding, Dedup& dedup,
                                          std::span<const PageWrites* const> pieces,
                                          std::vector<format::MapEntry> written,
                                          const std::function<const PageSource&()>& last_folded,
                                          const CommittedFn& committed, DepthTable& depths);

}  // namespace vellum::store
