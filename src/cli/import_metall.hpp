// cli/import_metall.hpp: a datastore of plain Metall becomes one of Vellum.
#pragma once

#include <cstdint>
#include <string>
#include <vellum/datastore.hpp>

namespace vellum::cli {

struct MetallImport {
  std::uint64_t segment_bytes = 0;  // of the segment's files together
  std::uint64_t data_bytes = 0;     // of them, what is no hole
  std::uint64_t books = 0;          // files of Metall's own
  CommitReport commit;
};

// Reads `from` as Metall 0.30 leaves it (FROM/mds), and makes the datastore `to`, which must not be
// there. All or nothing: what fails or is killed leaves a directory without a commit. Throws
// Errc::not_found: there is no such datastore; damaged: it was not closed, or its files do not fit
// together.
MetallImport import_metall(const std::string& from, const std::string& to,
                           const std::string& message, const ProgressFn& progress);

}  // namespace vellum::cli
