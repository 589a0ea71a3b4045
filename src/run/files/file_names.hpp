// run/files/file_names.hpp: file names that are removed and reused for other files: unlink(2),
// rename(2), link(2).
//
// Versions belong to names, descriptors to files. A file that has lost its name is committed once
// more and then released to the kernel, under the program's existing descriptors and mappings. A
// file that gets a watched name, in whatever way, is that branch's next commit.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "run/files/file_states.hpp"

namespace vellum::preload {

// The path, as the kernel resolves it, of a name in an existing directory; empty if there is no
// such directory. The name itself may be a link, or not exist.
std::string path_at(int directory, const char* path);

// Threads: any.
class FileNames {
 public:
  explicit FileNames(FileStates& states) noexcept : states_(states) {}

  // Whether a path currently names one of the files.
  static bool is_target(int directory, const char* path);
  // Whether a path may name one later: tests only its last part.
  static bool may_be_target(const char* path);

  // Change names by `call`, as unlink(2), rename(2) and link(2) do, and update the files
  // accordingly. `call` returns 0, or -1 and errno, and so do these.
  struct Name {
    int directory;
    const char* path;
  };
  int remove(int directory, const char* path, const std::function<int()>& call);
  int rename(const Name& from, const Name& to, bool exchange, const std::function<int()>& call);
  int link(const Name& to, const std::function<int()>& call);

  // Call before a name that may be a watched file's is created, removed or moved: commits the
  // changes by write(2), because a kill would keep them, too (FileStates::commit_in_order).
  void commit_before_change(const char* path);
  void commit_before_new(int directory, const char* path);  // if there is no file yet

 private:
  std::vector<std::string> release_at(const std::string& path);
  void adopt(const std::string& path);
  bool note_descriptors(const struct stat& status, std::size_t number);

  FileStates& states_;
};

}  // namespace vellum::preload
