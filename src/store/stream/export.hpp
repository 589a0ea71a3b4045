// store/stream/export.hpp: a version becomes a plain file.
#pragma once

#include <cstdint>
#include <vellum/report.hpp>

#include "base/files/file.hpp"
#include "store/page_map/page_source.hpp"
#include "store/stream/stream_options.hpp"

namespace vellum::store {

// Writes the content to a file without any, and gives it the version's size. Zero pages become
// holes. Nothing is durable on return.
void export_content(const PageSource& source, base::File& out, const StreamOptions& options,
                    const ProgressFn& progress);

}  // namespace vellum::store
