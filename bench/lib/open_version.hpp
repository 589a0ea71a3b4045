// bench/lib/open_version.hpp: opens a version like a program.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vellum/store.hpp>

namespace bench {

// Keeps a store and a region of it open.
struct OpenVersion {
  OpenVersion(const std::string& path, const std::string& version,
              const vellum::RegionOptions& options = {})
      : store(vellum::Store::open(path)), region(store.open_version(version, options)) {}
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(region.data()), region.size_bytes()};
  }
  vellum::Store store;
  vellum::Region region;
};

}  // namespace bench
