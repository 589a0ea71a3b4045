// store/catalog/staging_name.hpp: names of staging branches: "vellum-snapshot-" and 16 hex
// digits. A staging branch exists while a snapshot is created concurrently with its branch's writer
// (store/branch/live_snapshot.hpp), or while a branch gets its first content
// (store/branch/staging_branch.hpp). Users cannot create a branch or snapshot with such a name.
#pragma once

#include <string>

namespace vellum::store {

std::string random_staging_name();
bool is_staging_name(const std::string& name) noexcept;

}  // namespace vellum::store
