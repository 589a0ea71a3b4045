// api/snapshot_head.hpp: a snapshot of a branch's head, without its memory.
#pragma once

#include <string>
#include <vellum/store.hpp>

namespace vellum::api {

// As Region::snapshot() makes it of a region that has not changed: by the branch's writer, so later
// versions have it as their parent. Errc::busy when the branch has another writer.
CommitReport snapshot_head(Store& store, const std::string& branch, const std::string& name,
                           const std::string& message);

}  // namespace vellum::api
