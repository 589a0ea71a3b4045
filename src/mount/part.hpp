// mount/part.hpp: the files that one version holds: itself, or those of a datastore.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mount/versions.hpp"

namespace vellum::mount {

// A range of a version that is a file.
struct Part {
  std::string path;  // below the version's directory; empty: the version itself is the file
  std::uint64_t offset_bytes = 0, length_bytes = 0;
};

// One part without a path; or, for a datastore, its `segment` and `files/...`. Opens the version
// only where it is large enough for a datastore.
std::vector<Part> parts_of(const Versions& versions, const FoundVersion& version);

// The bytes from `at` on, of the part. REQUIRES: they lie in it. Errc::corrupted, io.
void read_part(const store::PageSource& source, const Part& part, std::uint64_t at,
               std::span<std::byte> out);

// The next offset from `at` on, in the part, where data begins, or where zeros begin that are never
// read from anywhere, in steps of 64 KiB: the part's length when there is none.
std::uint64_t next_data(const store::PageSource& source, const Part& part, std::uint64_t at);
std::uint64_t next_hole(const store::PageSource& source, const Part& part, std::uint64_t at);

}  // namespace vellum::mount
