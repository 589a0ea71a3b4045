// run/files/open_files.hpp: the watched files that the process has open or mapped.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "interfaces/mapped_io/mappings.hpp"
#include "run/files/descriptors.hpp"
#include "run/files/inode_sets.hpp"
#include "run/live/live_file.hpp"
#include "run/run/config.hpp"

namespace vellum::preload {

// Prints one line that names the file; returns the error.
int complain(const std::string& path, int error, const char* what);

struct OpenFile {
  RunTarget target;
  DescriptorIdentity file;
  std::size_t descriptors = 0;
  std::shared_ptr<LiveFile> live;
  bool to_be_found = false;      // not live, under this name; committed when it is no longer used
  bool kept = false;             // live, but closed by the program (FileStates::settle())
  mapped_io::Mappings mappings;  // of the live file

  // Live, and not a parent process's.
  bool is_own() const noexcept { return live != nullptr && !live->inherited(); }
};

using LiveFiles = std::vector<std::shared_ptr<LiveFile>>;

// REQUIRES: FileStates::mutex(), except where noted.
class OpenFiles {
 public:
  static constexpr std::size_t kNone = Descriptors::kNoTarget;

  // Its number; kNone: there are too many.
  std::size_t add(const struct stat& status, RunTarget target);
  // REQUIRES: no descriptor has its number.
  void remove(std::size_t number);
  OpenFile& operator[](std::size_t number) const { return *files_[number]; }
  std::size_t find(const struct stat& status) const;
  std::size_t find(const void* address) const;  // by a mapping
  // The numbers are below this one.
  std::size_t end() const noexcept { return files_.size(); }
  bool has(std::size_t number) const { return files_[number] != nullptr; }

  void note_live(const LiveFile& live);
  void forget_live(OpenFile& open);
  // Those that write(2) has changed since their last commit, in the order of the first change.
  LiveFiles written() const;
  // The same; none if `file` is the only one.
  LiveFiles written_among_others(const LiveFile& file) const;

  // Without the lock; false positives.
  bool any_live() const noexcept { return highest_ != 0; }
  bool may_contain(const void* address) const noexcept;
  static bool may_have(std::uint64_t inode) noexcept { return inodes_.may_have(inode); }

 private:
  struct IdentityHash {
    std::size_t operator()(const DescriptorIdentity& file) const noexcept {
      return static_cast<std::size_t>(file.inode * 0x9e3779b97f4a7c15 ^ file.device);
    }
  };

  std::vector<std::unique_ptr<OpenFile>> files_;  // null: free
  std::vector<std::size_t> free_;                 // the free numbers
  std::unordered_map<DescriptorIdentity, std::size_t, IdentityHash> numbers_;
  std::size_t live_ = 0;                                          // how many of them are live
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX}, highest_{0};  // addresses of live files
  static CountedInodeSet inodes_;
};

}  // namespace vellum::preload
