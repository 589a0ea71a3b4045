// interfaces/mapped_io/descriptor_io.hpp: read(2), write(2) and related calls on a file that the
// process has in memory. The kernel's own calls would miss the stores that are not yet in the file.
//
// Two libraries replace these calls: libvellum-run.so for live files (src/run) and
// libvellum-cards.so for atomically mapped ones (src/compiler/runtime). The common semantics are
// here: the errors of arguments, short reads and writes, a descriptor's offset, and O_APPEND. A
// MappedDescriptor has the differences: access to the bytes, and to the kernel.
//
// No function here allocates.
//
// Threads: any.
#pragma once

#include <limits.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace vellum::mapped_io {

inline constexpr off_t kOwnOffset = -1;  // the descriptor's own, which advances

// The offset of a call that has one. Maps -1, which would mean the descriptor's own here, to
// another invalid one.
inline off_t given_offset(off_t at) noexcept { return at < 0 ? -2 : at; }

// The flags of preadv2(2) that are accepted. Some change nothing, as memory does not wait.
inline constexpr int kNoAppend = 0x20;   // RWF_NOAPPEND, Linux 6.9
inline constexpr int kDontCache = 0x80;  // RWF_DONTCACHE, Linux 6.14
inline constexpr int kKnownFlags =
    RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND | kNoAppend | kDontCache;

// A descriptor of a file in memory, on the stack of one call.
class MappedDescriptor {
 public:
  virtual bool reads() const = 0;  // its access modes
  virtual bool writes() const = 0;
  virtual bool appends() const = 0;  // O_APPEND
  // The largest count of one call.
  virtual std::size_t most_bytes() const { return 0x7ffff000; }  // read(2), NOTES
  // lseek(2) of the kernel.
  virtual off_t seek(off_t offset_bytes, int whence) const = 0;
  // Return the count, or -1 and errno. Fewer bytes than wanted: the file, or the caller's memory,
  // ends there. `append`: writes at the current end, and sets `offset_bytes` to it.
  virtual ssize_t read_at(void* to, std::size_t length_bytes, std::uint64_t offset_bytes) = 0;
  virtual ssize_t write_at(const void* from, std::size_t length_bytes, std::uint64_t& offset_bytes,
                           bool append) = 0;

 protected:
  ~MappedDescriptor() = default;
};

// Return the count, or -1 and errno, as preadv2(2) and pwritev2(2) do, except that RWF_DSYNC and
// RWF_SYNC are the caller's task. A list of pieces that cannot be read is EFAULT where a region's
// fault handlers are installed (memory/kernel/guarded_copy.hpp).
ssize_t read_pieces(MappedDescriptor& file, const iovec* pieces, std::size_t count, off_t at,
                    int flags = 0);
ssize_t write_pieces(MappedDescriptor& file, const iovec* pieces, std::size_t count, off_t at,
                     int flags = 0);

// For pthread_atfork(3): no other thread is between reading and setting an offset while these are
// locked. Lock order: before any lock that a MappedDescriptor takes.
void lock_offsets() noexcept;
void unlock_offsets() noexcept;

// The iovec of a call with one buffer: read(2) and write(2) truncate counts above the limit of one
// call, while readv(2) refuses them.
inline iovec one_piece(const void* at, std::size_t length_bytes) noexcept {
  return {const_cast<void*>(at), std::min<std::size_t>(length_bytes, SSIZE_MAX)};
}

}  // namespace vellum::mapped_io
