// memory/shared/shared_file.hpp: a file in memory that the readers of one version share.
//
// It is in a tmpfs, belongs to one user and has mode 0600. The first reader creates it, complete
// before it has its name; every reader holds a shared lock on it, and the last one removes it,
// unless it is kept (shared_directory.hpp).
//
//   content   the version's chunks, each at its offset in the version
//   words     8 bytes a chunk: whether it is full, and its checksum (shared_chunks.hpp)
//   header    4096 bytes: a line with the layout and the library's version, and zeros
//
// The header is the last page, so that the content can be mapped from offset 0. A file with another
// header, size, owner or type is not used.
//
// The locks are those of fcntl(2), F_OFD_SETLK: they end with their process. They are on bytes of
// the file by number: chunk i has byte i, and the readers' byte and the loader's follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/threads/forked_locks.hpp"

namespace vellum::store {
class StoreDirectory;
struct ResolvedVersion;
}  // namespace vellum::store

namespace vellum::region {

// The name under which the readers of a version share its pages. Two readers get the same name only
// for the same content. The name is a hash of the store's id and location, since a copy of a store
// continues with the same ids, and of all references of the version: records have checksums, and so
// have references to them. Empty: the store's location is unknown.
std::string share_name(const store::StoreDirectory& store, const store::ResolvedVersion& version);

struct SharedLayout {
  std::string version;  // share_name()
  std::uint64_t content_bytes = 0;
  std::size_t chunk_bytes = 0;

  std::string name() const;
  std::size_t chunks() const noexcept { return (content_bytes + chunk_bytes - 1) / chunk_bytes; }
  std::uint64_t words_at() const noexcept { return chunks() * chunk_bytes; }
  std::uint64_t header_at() const noexcept;
  std::uint64_t file_bytes() const noexcept;
};

class SharedFile {
 public:
  // Null: no tmpfs is available, or another file has the name.
  static std::unique_ptr<SharedFile> open(const SharedLayout& layout);
  // A file that stays after its last reader. Null also if there is no room for it, or few descriptors
  // or little address space are left. REQUIRES: limit_bytes is not 0.
  static std::unique_ptr<SharedFile> open_kept(const SharedLayout& layout,
                                               std::uint64_t limit_bytes);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  int descriptor() const noexcept { return file_; }
  const SharedLayout& layout() const noexcept { return layout_; }

  // Locks bytes exclusively, or releases them. False: another reader holds one of them. Readers in
  // this process that open the file by themselves count as others. Async-signal-safe.
  bool try_lock(std::uint64_t first, std::uint64_t count) noexcept;
  void unlock(std::uint64_t first, std::uint64_t count) noexcept;
  // The number of the byte whose holder loads the version for all.
  std::uint64_t loader_byte() const noexcept { return layout_.chunks() + 1; }

 private:
  SharedFile(const SharedLayout& layout, int directory, std::uint64_t kept_limit_bytes);
  static std::unique_ptr<SharedFile> open_in(const SharedLayout& layout, int directory,
                                             std::uint64_t kept_limit_bytes);
  bool is_kept() const noexcept { return kept_limit_bytes_ != 0; }
  enum class OpenedFile { usable, removed, refused };
  bool open_or_create();
  OpenedFile open_existing();
  OpenedFile create();
  OpenedFile create_kept();
  OpenedFile check() const;
  std::uint64_t readers_byte() const noexcept { return layout_.chunks(); }
  void close_file() noexcept;

  const SharedLayout layout_;
  const std::string name_;
  int directory_;                         // -1: no longer needed
  const std::uint64_t kept_limit_bytes_;  // 0: the last reader removes the file
  int file_ = -1;
  base::ForkedLocks forked_;
};

}  // namespace vellum::region
