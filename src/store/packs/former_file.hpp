// store/packs/former_file.hpp: the files that packs had before a pull replaced them.
//
// A version pin is a lock on a file (store/catalog/lock/version_pin.hpp), and gc finds a file by its
// name. A file that loses its name to another one while it is pinned therefore first gets a second
// name beside it. gc reads the pins of such former files like those of packs, and unlinks a former
// file when it has none. After a power cut nothing is pinned, so these names are never synced.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "store/packs/pack_places.hpp"

namespace vellum::store {

struct FormerFile {
  std::uint64_t pack = 0;
  std::string path;
};

// "0123456789abcdef.pack.former.1"
std::string former_file_name(std::uint64_t pack, std::uint64_t number);
bool parse_former_file_name(const std::string& name, std::uint64_t& pack);

// Gives the pack's file at `path` a second name, for as long as it is pinned. Errc::busy: it is
// pinned, and its file system has no second names. Does nothing if no byte is pinned or no file has
// the path. REQUIRES: gc's lock and NamesExclusive are held, so that nobody pins it meanwhile.
void keep_pinned_file(base::Fs& fs, std::uint64_t pack, const std::string& path);

// The former files in the store's directories of packs, without a check of their pins.
std::vector<FormerFile> former_files(base::Fs& fs, const PackPlaces& places);

// Unlinks those that are not pinned. Returns the number of bytes that they take. REQUIRES: as
// keep_pinned_file().
std::uint64_t remove_former_files(base::Fs& fs, const PackPlaces& places);

}  // namespace vellum::store
