// store/gc/reach/base_pages.hpp: which records of pages have base pages, and which ones.
#pragma once

#include <functional>
#include <span>

#include "format/records/based_pages.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// How find_base_pages() treats what it cannot read.
struct BasePagesOptions {
  bool skip_corrupted = false;  // else Errc::corrupted
  // Whether records that are elsewhere are fetched. Otherwise they pass for records without base
  // pages: nobody here frees anything there.
  bool fetch = false;
};

// Calls visit(record, bases) for those of the records that are based. REQUIRES: entries of kind
// `base` lead to all of them; the records ascend.
void find_base_pages(
    PackStore& store, std::span<const format::RecordRef> records, const BasePagesOptions& options,
    const std::function<void(const format::RecordRef&, std::span<const format::BasePage>)>& visit);

}  // namespace vellum::store
