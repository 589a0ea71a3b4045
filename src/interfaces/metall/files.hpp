// interfaces/metall/files.hpp: the manager's files at the end of a datastore's region.
//
// The region is the segment, then an area of fixed size: kFiles slots of kFileBytes, and a page
// that lists them (the index). A file keeps its slot, so a version costs only its changes. The area
// moves when the segment grows; slots are sparse, so the move costs only the files' content.
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
  std::string name;  // below the directory of files; empty: the slot is free
  std::uint64_t length_bytes = 0;
};
using FileIndex = std::array<FileEntry, kFiles>;

using PageBytes = std::array<std::byte, format::kPageBytes>;
// REQUIRES: names and lengths are within the limits of the format, as decode_index() checks them.
PageBytes encode_index(const FileIndex& index);
// nullptr, or a description of the error. A page of zeros is a region that has no commit yet or is
// no datastore: `index` is empty then and "no datastore" is returned.
const char* decode_index(std::span<const std::byte> page, FileIndex& index);

// Makes the area in memory equal to the directory and stores only to pages that differ. `index`
// describes the area, before and after. Errc::invalid_argument: too many files, or one that is too
// large; the message names it.
void pack_files(const std::string& directory, std::byte* area, FileIndex& index);
// Sets the area to zero. REQUIRES: `index` describes it.
void clear_files(std::byte* area, const FileIndex& index);

// Reads bytes of an area in some version.
using ReadArea = std::function<void(std::uint64_t offset_bytes, std::span<std::byte> out)>;
// Writes the files that differ, each by a new file that replaces it, so a reader sees it whole.
// Writes files in `own` only if they are missing or empty. REQUIRES: decode_index() has accepted
// `index`.
void unpack_files(const std::string& directory, const FileIndex& index, const ReadArea& read,
                  const std::vector<std::string>& own);

// Whether the directory holds exactly the files of the area.
bool files_are(const std::string& directory, const FileIndex& index, const ReadArea& read);

}  // namespace vellum::datastore
