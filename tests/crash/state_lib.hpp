// The content that a store reports: every version, by name, as a digest of its bytes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/catalog/store_directory.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::crash {

struct VersionState {
  std::uint64_t sequence = 0;
  std::uint64_t region_bytes = 0;
  std::uint64_t digest = 0;
  bool operator==(const VersionState&) const = default;
};

struct StoreState {
  bool exists = false;  // is the directory a store?
  std::map<std::string, VersionState> branches, snapshots;
  bool operator==(const StoreState&) const = default;
  std::string text() const;
};

VersionState state_of(std::uint64_t sequence, const std::vector<std::byte>& bytes);
std::shared_ptr<store::PageSource> open_version(store::StoreDirectory& store,
                                                const std::string& name);
std::vector<std::byte> read_pages(const store::PageSource& source);
// Reads every byte of every version. Throws the errors of opening and reading.
StoreState read_state(base::Fs& fs, const std::string& path);
StoreState read_state(store::StoreDirectory& store);

}  // namespace vellum::crash
