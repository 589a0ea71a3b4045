// A store in memory with known content, to be corrupted: several packs (some sealed), snapshots,
// deltas over several runs, and branches in every state (closed, with commits in the journal, never
// written).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/catalog/store_directory.hpp"
#include "support/disk/memory_fs.hpp"

namespace vellum::corruption {

using Bytes = std::vector<std::byte>;

inline constexpr const char* kStorePath = "/store";

struct Sample {
  std::unique_ptr<test::MemoryFs> fs;
  std::map<std::string, Bytes> contents;  // of each version, by name
};

// About `pages` * 4 KiB of content that hardly compresses. The branch "open" is in the state of a
// crash.
Sample make_sample(std::size_t pages, std::uint64_t seed);

// Reads all of a version. Throws the store's errors.
Bytes read_version(store::StoreDirectory& store, const std::string& name);

}  // namespace vellum::corruption
