// remote/lazy/shared_opening.hpp: the first requests for an opening: the superblock and the newest
// head. Processes of one machine that open a remote concurrently share them.
//
// A process never gets a listing that began before its own call: an opening finds every earlier
// push. The replies are in the cache directory, and are checked like those of the remote.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "remote/session/remote.hpp"

namespace vellum::remote {

struct Opening {
  std::vector<std::byte> superblock;  // of the remote
  std::optional<ListedHead> listed;   // the newest head; nullopt: none
  std::vector<std::byte> head;        // a hint for Remote::newest_head()
  // Hints for Remote::give_lists(). Another process finds them in the cache.
  std::vector<std::vector<std::byte>> lists;
};

// Errc::not_found: no remote. `cache_directory` is empty if there is no cache.
Opening read_opening(base::Fs& fs, ObjectStore& objects, const std::string& cache_directory);

}  // namespace vellum::remote
