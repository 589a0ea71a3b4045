// remote/lazy/shared_opening.hpp: what opening a remote asks first: its superblock, and which head is
// the newest. Processes of one machine that open it at once ask together.
//
// Nobody gets a listing that began before it came: what was pushed before an opening is found by it.
// The answers lie in the cache directory, and are checked as those of the remote are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "remote/session/remote.hpp"

namespace vellum::remote {

struct Opening {
  std::vector<std::byte> superblock;  // as the remote has it
  std::optional<ListedHead> listed;   // the newest head; nothing: there is none
  std::vector<std::byte> head;        // perhaps that head, for Remote::newest_head()
};

// Errc::not_found: there is no remote. `cache_directory` is empty where there is none.
Opening read_opening(base::Fs& fs, ObjectStore& objects, const std::string& cache_directory);

}  // namespace vellum::remote
