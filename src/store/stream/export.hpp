// store/stream/export.hpp: writes a version to a plain file.
#pragma once

#include <cstdint>
#include <vellum/report.hpp>

#include "base/files/file.hpp"
#include "store/page_map/page_source.hpp"
#include "store/stream/stream_options.hpp"

namespace vellum::store {

// Writes the content to the empty file `out`, and sets its size to the version's. Zero pages become
// holes. Nothing is durable on return.
void export_content(const PageSource& source, base::File& out, const StreamOptions& options,
                    const ProgressFn& progress);

}  // namespace vellum::store
