// cli/files/import_metall.hpp: converts a datastore of plain Metall to one of Vellum.
#pragma once

#include <cstdint>
#include <string>
#include <vellum/datastore.hpp>

namespace vellum::cli {

struct MetallImport {
  std::uint64_t segment_bytes = 0;   // all files of the segment
  std::uint64_t data_bytes = 0;      // of these, without holes
  std::uint64_t metadata_files = 0;  // Metall's own
  CommitReport commit;
};

// Reads `from` in the format of Metall 0.30 (FROM/mds), and creates the datastore `to`, which must
// not exist. All or nothing: a failure or a kill leaves a directory without a commit. Throws
// Errc::not_found: there is no such datastore; corrupted: it was not closed, or its files do not
// match.
MetallImport import_metall(const std::string& from, const std::string& to,
                           const std::string& message, const ProgressFn& progress);

}  // namespace vellum::cli
