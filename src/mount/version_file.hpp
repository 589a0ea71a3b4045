// mount/version_file.hpp: the files of one version: itself, or those of a datastore.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mount/versions.hpp"

namespace vellum::mount {

// A range of a version that is a file.
struct VersionFile {
  std::string path;  // below the version's directory; empty: the version itself is the file
  std::uint64_t offset_bytes = 0, length_bytes = 0;
};

// One file without a path; or, for a datastore, its `segment` and `files/...`. Opens the version
// only if it is large enough for a datastore.
std::vector<VersionFile> files_of(const Versions& versions, const FoundVersion& version);

// Reads the bytes from `at` on. REQUIRES: they are inside the file. Errc::corrupted, io.
void read_version_file(const store::PageSource& source, const VersionFile& file, std::uint64_t at,
                       std::span<std::byte> out);

// The next offset from `at` on in the file at which data begins, or at which a hole begins (zeros
// without any record), in steps of 64 KiB; the file's length if there is none.
std::uint64_t next_data(const store::PageSource& source, const VersionFile& file, std::uint64_t at);
std::uint64_t next_hole(const store::PageSource& source, const VersionFile& file, std::uint64_t at);

// The bytes outside of holes, in the same steps. nullopt: the file is too long to be searched.
std::optional<std::uint64_t> data_bytes(const store::PageSource& source, const VersionFile& file);

}  // namespace vellum::mount
