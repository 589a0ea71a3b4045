// region/api/import.hpp: imports any content into a branch, for the import calls of the C++
// interface and for commands.
#pragma once

#include <string>
#include <vellum/store.hpp>

#include "store/stream/content.hpp"

namespace vellum::api {

// Replaces the branch's content, in one commit. A missing branch is created, and becomes visible
// when it is whole. An exception from the content ends the import and changes nothing. On a full
// disk gc may free space, and the content is read again if it can be. With `snapshot`, a name, the
// commit is that snapshot, and after an error neither exists.
CommitReport import_content(Store& store, const std::string& branch, store::Content& content,
                            const std::string& message, const ProgressFn& progress,
                            const std::string* snapshot = nullptr);

}  // namespace vellum::api
