// interfaces/metall/files.hpp: the manager's files at the end of a datastore's region.
//
// The region is the segment, then an area of fixed size: kFiles places of kFileBytes, and a page
// that lists them (the index). A file keeps its place, so a version costs only its changes. The
// area moves when the segment grows; places are sparse, so the move costs only the files' content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>
#include <vellum/datastore.hpp>

#include "format/wire/types.hpp"

namespace vellum::datastore {

inline constexpr std::uint64_t kFiles = Datastore::kFiles;
inline constexpr std::uint64_t kFileBytes = Datastore::kFileBytes;
inline constexpr std::uint64_t kAreaBytes = kFiles * kFileBytes + format::kPageBytes;

struct FileEntry {
  std::string name;  // below the directory of files; empty: the place is free
  std::uint64_t length_bytes = 0;
};
using FileIndex = std::array<FileEntry, kFiles>;

using PageBytes = std::array<std::byte, format::kPageBytes>;
PageBytes encode_index(const FileIndex& index);
// nullptr, or a description of the error. A page of zeros is a region that has no commit yet or is
// no datastore: `index` is left empty and "no datastore" returned.
const char* decode_index(std::span<const std::byte> page, FileIndex& index);

// Makes the area in memory equal to the directory and stores only to pages that differ. `index`
// describes the area, before and after. Errc::invalid_argument: too many files, or one that is too
// large; the message names it.
void pack_files(const std::string& directory, std::byte* area, FileIndex& index);
// Makes the area zero again. REQUIRES: `index` describes it.
void clear_files(std::byte* area, const FileIndex& index);

// Reads bytes of an area in some version.
using ReadArea = std::function<void(std::uint64_t offset_bytes, std::span<std::byte> out)>;
// Writes the files that differ, each by a new file in its place, so a reader sees all of it. Writes
// files in `own` only if they are missing or empty.
void unpack_files(const std::string& directory, const FileIndex& index, const ReadArea& read,
                  const std::vector<std::string>& own);

// Whether the directory holds exactly the files of the area.
bool files_are(const std::string& directory, const FileIndex& index, const ReadArea& read);

}  // namespace vellum::datastore
