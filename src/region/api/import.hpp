// region/api/import.hpp: a branch takes any content, for the import calls of the C++ interface and for
// programs' own sources.
#pragma once

#include <string>
#include <vellum/store.hpp>

#include "store/stream/content.hpp"

namespace vellum::api {

// Gives the branch the content, in one commit. The branch is made when it does not exist; nobody
// sees it before it is whole. An exception from the content ends the import and leaves all as it
// was. Where the disk is full, gc may make room, and the content is read again if it can be. With
// `snapshot`, a name, the commit is that snapshot, and after an error there is neither.
CommitReport import_content(Store& store, const std::string& branch, store::Content& content,
                            const std::string& message, const ProgressFn& progress,
                            const std::string* snapshot = nullptr);

}  // namespace vellum::api
