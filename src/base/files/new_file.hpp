// base/files/new_file.hpp: files and directories that get their final name when they are complete.
//
// Until then they are in the same directory as `.vellum-new.NAME.PID.TIME.N`, with a lock that ends
// with its process. The next writer in the directory removes the files of killed processes. A final
// name therefore never has a partial file, and a second attempt does not find the remains of the
// first.
#pragma once

#include <cassert>
#include <memory>
#include <string>

#include "base/files/file.hpp"

namespace vellum::base {

// The directory of a path; "." for a bare name.
std::string parent_of(const std::string& path);
std::string without_end_slashes(std::string path);  // "/" remains "/"

// "PID.TIME.N": unique among the processes that share a directory, even across machines and
// process-id namespaces. O_EXCL turns the improbable clash into an error.
std::string unique_suffix();

// Creates a directory unless it exists. Returns whether it was created.
bool ensure_directory(Fs& fs, const std::string& path);
// The same, with its parents.
void ensure_directories(Fs& fs, const std::string& path);

// Removes the unfinished files of killed processes in a directory. Never fails: skips files that it
// cannot remove.
void sweep_unfinished(Fs& fs, const std::string& directory) noexcept;

// Sweeps the directory of a path and throws Errc::already_exists unless the path is free. For
// callers that would write much before noticing a taken name.
void require_free(Fs& fs, const std::string& path);

class NewFile {
 public:
  // Errc::not_found: the directory does not exist.
  NewFile(Fs& fs, std::string path);
  ~NewFile();  // removes the file unless it has its name
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // REQUIRES: not yet published or replaced.
  File& file() noexcept {
    assert(file_ != nullptr);
    return *file_;
  }
  const std::string& unfinished_path() const noexcept { return unfinished_; }
  // Call one of the following once.
  // Durable on return, and unlocked. Errc::already_exists: the name is taken.
  void publish();
  // The same, replacing any file of that name.
  void replace();
  // For files that can be created again: renames the file to `path`, in the same directory or below
  // it, replaces any file there and syncs nothing.
  void replace_unsynced(const std::string& path);

 private:
  void name_it(bool replacing);
  Fs& fs_;
  const std::string path_;
  std::string unfinished_;
  std::unique_ptr<File> file_;
};

// The same for a directory. The caller makes its content durable.
class NewDirectory {
 public:
  NewDirectory(Fs& fs, std::string path);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  // The path for the caller to create the directory. It does not exist yet.
  const std::string& unfinished_path() const noexcept { return unfinished_; }
  // Errc::already_exists: the name is taken.
  void publish();

 private:
  Fs& fs_;
  const std::string path_;
  NewFile lock_;
  const std::string unfinished_;
};

}  // namespace vellum::base
