// run/files/unseen_uses.hpp: uses of files that the library does not see: descriptors and mappings
// from before the file was watched, or of another name.
#pragma once

#include <cstdint>

#include "run/files/inode_sets.hpp"
#include "run/files/open_files.hpp"

namespace vellum::preload {

// Threads: any. Recording a file allocates nothing and takes no lock, except note_all().
class UnseenUses {
 public:
  // The program has opened or mapped a file that is not live.
  static void note(int fd) noexcept;
  static void note_inode(std::uint64_t inode) noexcept { used_.add(inode); }
  // The files that the process has open or mapped now.
  static void note_all();
  static bool may_have(std::uint64_t inode) noexcept { return used_.may_have(inode); }

  // Refuses a file that is in use without this library, bypassing the live file's memory: through
  // a writable mapping, or a descriptor other than `fd` that was inherited or opened under another
  // name. Returns 0 or errno.
  static int refuse(const OpenFile& open, int fd);
  // Makes older read-only mappings show later writes (read_views.hpp). Returns 0 or errno.
  static int keep_views(const OpenFile& open);

 private:
  // If a file is not in this set, no search of all descriptors and mappings of the process is
  // needed.
  static InodeSet used_;
};

}  // namespace vellum::preload
