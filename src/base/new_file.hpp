// base/new_file.hpp: files and directories that get their final name when they are complete.
//
// Until then they stand beside that name, as `.vellum-new.NAME.PID.TIME.N`, under a lock that dies
// with its holder. Whoever makes the next one in the same directory removes what killed processes
// have left there. So a final name never shows a part of anything, and a second try never meets
// what the first one has left.
#pragma once

#include <memory>
#include <string>

#include "base/file.hpp"

namespace vellum::base {

// Its directory; "." for a bare name.
std::string parent_of(const std::string& path);

// Makes a directory unless it is there. True: it was made.
bool ensure_directory(Fs& fs, const std::string& path);

// Removes what killed processes have left in a directory. Never fails: what cannot go stays.
void sweep_unfinished(Fs& fs, const std::string& directory) noexcept;

// The same of the directory of a path, which must be free: Errc::already_exists. For who would
// write long before a name that is taken is noticed.
void require_free(Fs& fs, const std::string& path);

class NewFile {
 public:
  // Errc::not_found: there is no such directory.
  NewFile(Fs& fs, std::string path);
  ~NewFile();  // gone, unless it has got its name
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  File& file() noexcept { return *file_; }
  const std::string& unfinished_path() const noexcept { return unfinished_; }
  // Durable on return, and unlocked. Errc::already_exists: something has the name.
  void publish();
  // The same, in place of what has the name.
  void replace();
  // For what can be made again: it gets this name, in the same directory or below it, in place of
  // what has it, and nothing is synced.
  void replace_unsynced(const std::string& path);

 private:
  void name_it(bool replacing);
  Fs& fs_;
  const std::string path_;
  std::string unfinished_;
  std::unique_ptr<File> file_;
};

// The same for a directory: its content is made durable by whoever writes it.
class NewDirectory {
 public:
  NewDirectory(Fs& fs, std::string path);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  // Where it is made. It does not exist yet.
  const std::string& unfinished_path() const noexcept { return unfinished_; }
  // Errc::already_exists: something has the name.
  void publish();

 private:
  Fs& fs_;
  const std::string path_;
  NewFile lock_;
  const std::string unfinished_;
};

}  // namespace vellum::base
