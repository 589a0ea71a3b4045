// store/page_map/page_source_state.hpp: the state shared by the source files of PageSource; internal.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/page_map/overlay.hpp"
#include "store/page_map/page_source.hpp"
#include "store/page_map/run_reader.hpp"

namespace vellum::store {

struct PageSourceState {
  PackStore* store = nullptr;
  RecordCache* records = nullptr;
  std::string label;
  std::string packs_directory;
  std::uint64_t region_bytes = 0;
  std::optional<std::uint64_t> file_bytes;
  std::vector<std::shared_ptr<const LoadedRun>> runs;  // newest first
  Overlay overlay;
  VersionPin version_pin;
};

struct PageSource::Impl : PageSourceState {};

// The first entry that ends after `page`; the end if none does.
const format::MapEntry* first_reaching(std::span<const format::MapEntry> entries,
                                       format::PageNumber page) noexcept;

}  // namespace vellum::store
