// store/catalog/staging_name.hpp: the names of branches aside, "vellum-snapshot-" and 16 hex digits.
// Such a branch exists while a snapshot is made beside its branch's writer
// (store/branch/checkpointed_head.hpp), or a branch gets its first content
// (store/branch/staging_branch.hpp). Callers cannot make a branch or snapshot with such a name.
#pragma once

#include <string>

namespace vellum::store {

std::string random_aside_name();
bool is_aside_name(const std::string& name) noexcept;

}  // namespace vellum::store
