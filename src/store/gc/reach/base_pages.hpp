// store/gc/reach/base_pages.hpp: finds the base pages of records.
#pragma once

#include <functional>
#include <span>

#include "format/records/based_pages.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// The treatment of records that find_base_pages() cannot read locally.
struct BasePagesOptions {
  bool skip_corrupted = false;  // else Errc::corrupted
  // Whether to fetch records of remote packs. Otherwise they count as records without base pages:
  // gc does not free parts of remote packs.
  bool fetch = false;
};

// Calls visit(record, bases) for each of the records that has base pages. REQUIRES: the records
// ascend, and entries of kind `base` refer to them.
void find_base_pages(
    PackStore& store, std::span<const format::RecordRef> records, const BasePagesOptions& options,
    const std::function<void(const format::RecordRef&, std::span<const format::BasePage>)>& visit);

}  // namespace vellum::store
