// store/page_map/resolved_version.hpp: a version of a store, found by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/journal.hpp"
#include "format/version.hpp"
#include "format/wire/superblock.hpp"

namespace vellum::store {

// A version by name: a snapshot, or a branch's head with the journal's commits.
struct ResolvedVersion {
  std::string label;  // "snapshot 'x'" or "branch 'main'"
  bool is_branch = false;
  format::Version version;  // without the commits
  std::vector<format::CommitBody> commits;
  std::int64_t created_ns = 0;
  std::string branch;
  std::optional<format::Encoding> encoding = std::nullopt;  // of a branch: its own
  std::uint64_t order = 0;                                  // of a snapshot: format::SnapshotRef
  std::optional<format::VersionSignature> signature = std::nullopt;  // of a snapshot

  // The version with the journal's commits applied.
  const format::CommitInfo& head_info() const noexcept {
    return format::head_info(version, commits);
  }
  std::uint64_t head_sequence() const noexcept { return format::head_sequence(version, commits); }
};

}  // namespace vellum::store
