// store/branch/checkpoint/chain_deltas.hpp: the deltas on the bases of many pages, read together.
//
// A page at the end of its chain gets one delta for its whole chain. Page by page, each record would
// be decompressed again for each delta in it. Here each record is decompressed once for all pages, and
// several threads share the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/records/delta.hpp"
#include "format/records/page_map.hpp"
#include "store/packs/encode/encoding_threads.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

class StoreDirectory;

// Removes the entry below the deltas from a page's chain and returns it: a base, or zero if the chain
// has none.
format::MapEntry take_base(std::vector<format::MapEntry>& chain, format::PageNumber page);

class ChainDeltas {
 public:
  // Of `pages`, in `version`. Uses about 64 bytes of memory for each link of a chain, and its delta.
  // Throws Errc::corrupted.
  ChainDeltas(StoreDirectory& store, const PageSource& version,
              std::span<const format::PageNumber> pages, EncodingThreads& threads);

  // The entry under the deltas of pages[index]: a base or zero.
  const format::MapEntry& base(std::size_t index) const { return bases_[index]; }
  // Applies these deltas, oldest first.
  void apply(std::size_t index, format::DeltaComposer& composer) const;

 private:
  struct Link {
    format::RecordRef record;
    std::uint32_t slot = 0;
    std::uint32_t page = 0;    // which of the pages
    std::uint32_t deltas = 0;  // which of deltas_
    std::size_t first_span = 0, first_byte = 0;
    std::uint32_t spans = 0, bytes = 0;
  };
  // Copies of some records' deltas.
  struct Deltas {
    std::vector<format::DeltaSpan> spans;
    std::vector<std::byte> bytes;
  };
  // Copies the deltas that `links` name. REQUIRES: all are in one record.
  void copy(StoreDirectory& store, const PageSource& version, std::span<const std::uint32_t> links,
            std::span<const format::PageNumber> pages, std::uint32_t into);

  std::vector<Link> links_;              // of each page, oldest first
  std::vector<std::size_t> first_link_;  // of each page, and one past the last
  std::vector<format::MapEntry> bases_;  // of each page
  std::vector<Deltas> deltas_;
};

}  // namespace vellum::store
