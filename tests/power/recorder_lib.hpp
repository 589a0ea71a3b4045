// A process that serves the medium below a file system and logs its requests.
//
// It mounts a FUSE file system with one file, `disk`. A loop device over that file passes on every
// write, and every flush as an fsync. The process dies with its parent; its mounts are in the
// parent's own mount namespace and disappear with it.
#pragma once

#include <sys/types.h>

#include <string>

#include "power/block_log_lib.hpp"
#include "power/shared_memory_lib.hpp"

namespace vellum::power {

class Recorder {
 public:
  // `disk`: the content of the medium; it follows the writes. `directory`: an empty one to mount
  // on.
  Recorder(const Descriptor& disk, std::string directory);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  std::string file() const { return directory_ + "/disk"; }
  Progress& progress();
  // A file that holds a Progress: for processes that inherit it.
  const Descriptor& progress_file() const { return progress_file_; }
  // REQUIRES: no process has the file open. Called once.
  BlockLog stop();

 private:
  void end();

  std::string directory_;
  Descriptor log_file_, progress_file_;
  MappedMemory progress_;
  pid_t process_ = -1;
};

}  // namespace vellum::power
